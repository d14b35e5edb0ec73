"""A method that has changed is run again: at a prompt, in a notebook, or in files."""

import subprocess
import sys

import pytest

from tests.helpers.comparing import Watch, compared
from tests.helpers.notebooks import notebook

PARENT = """
import d3gd

class Parent(d3gd.Algorithm):
    def moved(self, x, g):
        return x - 0.001 * self.gamma * g
"""
MINE = """
class Mine(Parent):
    def __init__(self, gamma):
        self.gamma = gamma

    def step(self, net, gradient, s, k):
        return s._replace(x=self.moved(s.x, gradient()))
"""
COMPARED = """
import d3gd
from d3gd.comparison import figure
figure.draw = lambda comparison, suffixes: dict.fromkeys(suffixes, b"")  # which would take longer than all else
found = d3gd.compare(
    d3gd.graphs.ring(3),
    lambda seed: d3gd.problems.quadratic(agents=3, dim=2, seed=seed),
    methods={"mine": lambda gamma: Mine(gamma)},
    only=["mine"], iterations=20, seeds=1, steps=[0.1], jobs=1, out="comparison",
)
print(found.row("mine").value.median)
"""
MENDED = "x - 0.001 * self.gamma * g", "x - self.gamma * g"
RUNS = 3 + 1  # on the seeds of tuning, and on the one that is reported


def typed(*sources):
    """What is defined where nothing can be read back, as at Python's prompt."""
    scope = {"__name__": "__main__"}
    for source in sources:
        exec(compile(source, "<stdin>", "exec"), scope)
    return scope


def test_what_is_typed_again_is_run_again_and_only_if_it_differs(tmp_path, blank):
    watch, values = Watch(tmp_path), []
    for parent, runs in ((PARENT, RUNS), (PARENT, 0), (PARENT.replace(*MENDED), RUNS), (PARENT.replace(*MENDED), 0)):
        own = {"mine": typed(parent, MINE)["Mine"]}
        values.append(compared(methods=own, only=["mine"], steps=[0.1], seeds=1, out=tmp_path).row("mine").value.median)
        assert watch.made() == runs
    assert values[0] == values[1] != values[2] == values[3]


def test_what_cannot_be_told_is_run_again_with_a_word(tmp_path, blank):
    rng = "import numpy as np\nrng = np.random.default_rng(0)\n"
    noisy = MINE.replace("gradient())", "gradient()) + 0 * rng.random()", 1)
    options = {"only": ["mine"], "steps": [0.1], "seeds": 1, "out": tmp_path}
    watch = Watch(tmp_path)
    compared(methods={"mine": typed(rng, PARENT, noisy)["Mine"]}, **options)
    assert watch.made() == RUNS
    with pytest.warns(UserWarning, match=r"method 'mine' is run again: .*rng \(Generator\) of Mine\.step") as told:
        compared(methods={"mine": typed(rng, PARENT, noisy)["Mine"]}, **options)
    assert watch.made() == RUNS
    assert len(told) == 1


def test_a_problem_whose_code_was_changed_is_run_again(tmp_path, blank):
    source = (
        "import numpy as np\nfrom d3gd.problems import Problem\n"
        "class Noisy(Problem):\n"
        "    agents, dim = 4, 3\n"
        "    def gradients(self, x, k=None):\n"
        "        return x - 1 if k is None else x - 1 + 0.1 * np.sin(k)\n"
    )
    watch = Watch(tmp_path)
    for text, runs in ((source, RUNS), (source, 0), (source.replace("0.1", "0.2"), RUNS)):
        compared(problem=typed(text)["Noisy"](), only=["DiDGD"], steps=[0.1], seeds=1, out=tmp_path)
        assert watch.made() == runs


def test_a_file_whose_parent_class_was_mended_is_run_again(tmp_path):
    parent, watch = tmp_path / "parent.py", Watch(tmp_path / "comparison")
    (tmp_path / "mine.py").write_text(f"from parent import Parent\n{MINE}\n{COMPARED}")
    values = []
    for text, runs in ((PARENT, RUNS), (f"# moved\n\n{PARENT}", 0), (PARENT.replace(*MENDED), RUNS)):
        parent.write_text(text)
        command = [sys.executable, "-B", "mine.py"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=True)
        values.append(float(done.stdout))
        assert watch.made() == runs
    assert values[0] == values[1] != values[2]


def test_a_class_that_is_mended_in_a_notebook_is_run_again(tmp_path):
    watch = Watch(tmp_path / "comparison")
    with notebook(tmp_path) as book:
        book.run(PARENT)
        book.run(MINE)
        before = float(book.run(COMPARED))
        assert watch.made() == RUNS
        book.run("unrelated = 1\n")
        book.run(MINE)  # executed again as it was
        assert float(book.run(COMPARED)) == before
        assert watch.made() == 0
        book.run(PARENT.replace(*MENDED))
        book.run(MINE)
        assert float(book.run(COMPARED)) != before
        assert watch.made() == RUNS
