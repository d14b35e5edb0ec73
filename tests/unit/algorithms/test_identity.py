"""The identity of a method depends on what its code does, and on nothing else."""

import functools
import json
import os
import subprocess
import sys
from dataclasses import dataclass

import numpy as np
import pytest

import d3gd
from d3gd.algorithms.identity import describe, identify
from d3gd.comparison.methods import usual

METHOD = """
import functools, math
from dataclasses import dataclass, field

RATE = 0.1
TABLE = {"a": [1, 2]}

def noted(f):
    @functools.wraps(f)
    def wrapper(*args):
        return f(*args)
    return wrapper

@functools.cache
def cached(x):
    return x + 1.0

def deep(x):
    return x * 3.0

def helper(x, scale=2.0, *, shift=0.5):
    return deep(x) * scale + shift

class Grandparent:
    factor = (1.0, {5.0, 6.0})
    def base(self, x):
        return x + 11.0

class Parent(Grandparent):
    @property
    def size(self):
        return 7.0
    @classmethod
    def made(cls):
        return cls, 8.0
    @staticmethod
    def fixed():
        return 9.0
    @noted
    def wrapped(self, x):
        return x - 13.0

def maker(bound):
    @dataclass(frozen=True)
    class Mine(Parent):
        gamma: float = 0.3
        powers: list = field(default_factory=lambda: [17.0])
        def step(self, x):
            def inner(y):
                return y + 19.0
            try:
                return inner(helper(x)) + RATE + bound + TABLE["a"][0] + self.base(x) + cached(x) + math.exp(0)
            except ValueError:
                return 23.0
    return Mine

mine = maker(bound=29.0)()
"""


def defined(source, name="<stdin>"):
    """What code defines when it is typed in: there is no file to read it from."""
    scope = {"__name__": "__main__"}
    exec(compile(source, name, "exec"), scope)
    return scope


def identity(source, **how):
    return identify(defined(source, **how)["mine"])


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("RATE = 0.1", "RATE = 0.2"),
        ("[1, 2]", "[1, 3]"),
        ("x + 1.0", "x - 1.0"),
        ("x * 3.0", "x * 4.0"),
        ("scale=2.0", "scale=2.5"),
        ("shift=0.5", "shift=0.6"),
        ("(1.0, {5.0, 6.0})", "(1.0, {5.0, 7.0})"),
        ("x + 11.0", "x + 12.0"),
        ("return 7.0", "return 7.5"),
        ("cls, 8.0", "cls, 8.5"),
        ("return 9.0", "return 9.5"),
        ("x - 13.0", "x - 14.0"),
        ("return f(*args)", "return 2 * f(*args)"),
        ("gamma: float = 0.3", "gamma: float = 0.4"),
        ("[17.0]", "[18.0]"),
        ("y + 19.0", "y + 20.0"),
        ("return 23.0", "return 24.0"),
        ("except ValueError", "except KeyError"),
        ("bound=29.0", "bound=30.0"),
        ("math.exp", "math.log1p"),
        ("self.base(x)", "self.base(-x)"),
        ("class Parent(Grandparent)", "class Parent"),
    ],
)
def test_every_change_of_what_a_method_computes_is_seen(before, after):
    assert METHOD.count(before) == 1
    assert identity(METHOD) != identity(METHOD.replace(before, after))


def test_where_code_stands_does_not_matter():
    moved = "# a comment\n\n\nunused = 1\n" + METHOD.replace("def deep", "\n\n\ndef deep")
    assert identity(moved, name="/elsewhere/cell_7.py") == identity(METHOD)
    assert identity(METHOD).unknown == ()


def test_helpers_in_other_modules_are_followed(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    texts = ["import d3gd_test_helpers as h\ndef mine(x):\n    return h.used(x)\n"]
    texts += ["def mine(x):\n    from d3gd_test_helpers import used\n    return used(x)\n"]
    texts += ["def mine(x):\n    import d3gd_test_helpers\n    return d3gd_test_helpers.used(x)\n"]
    found = []
    for number in (1, 2):
        (tmp_path / "d3gd_test_helpers.py").write_text(
            f"def used(x):\n    return {number} * x\n\nclass Other:\n    pass\n"
        )
        sys.modules.pop("d3gd_test_helpers", None)
        found.append([identity(text) for text in texts])
    assert all(a != b for a, b in zip(*found, strict=True))


def test_functions_and_classes_that_refer_to_each_other_have_an_identity():
    source = (
        "def even(n):\n    return n == 0 or odd(n - 1)\n"
        "def odd(n):\n    return n != 0 and even(n - 1)\n"
        "class A:\n    def other(self):\n        return B\n"
        "class B(A):\n    def other(self):\n        return super().other(), A, even\n"
        "mine = B()\nmine.me = [mine]\n"
    )
    assert identity(source) == identity(source)
    assert identity(source) != identity(source.replace("n != 0", "n != 1"))


def everything():
    """The identities of the library's methods and of code with sets, whose order is another in every process."""
    sets = "words = {str(i) for i in range(50)}\ndef mine(x):\n    return words, x in {'a', 'b', 'c'}\n"
    lazy = "import d3gd\ndef mine(graph):\n    return d3gd.weights.lazy(graph), d3gd.plots, d3gd.theory.constants\n"
    found = [*(identify(make(0.1)) for make in usual().values()), *map(identity, (METHOD, sets, lazy))]
    return [one.digest for one in found]


def test_another_process_and_another_order_of_sets_change_nothing():
    code = f"from {__name__} import everything\nprint(*everything())"
    command, env = [sys.executable, "-B", "-c", code], {**os.environ, "PYTHONHASHSEED": "1"}
    answer = subprocess.run(command, env=env, capture_output=True, text=True, check=True, timeout=120)
    assert answer.stdout.split() == everything()


def test_all_methods_of_the_library_are_known_and_stay_what_they_are_when_run():
    methods = {name: make(0.1) for name, make in usual().items()}
    before = {name: identify(method) for name, method in methods.items()}
    assert {name for name, identity in before.items() if identity.unknown} == set()
    assert len({identity.digest for identity in before.values()}) == len(methods)
    graph, problem = d3gd.graphs.grid(2, 2), d3gd.problems.quadratic(agents=4, dim=2)
    for method in methods.values():
        d3gd.run(method, graph, problem, iterations=3)
    assert {name: identify(method) for name, method in methods.items()} == before


def test_what_cannot_be_told_is_named_until_it_has_a_fingerprint():
    source = (
        "import numpy as np\nrng = np.random.default_rng(0)\nclass Mine:\n    def step(self):\n        return rng\n"
    )
    (unknown,) = identity(source + "mine = Mine()").unknown
    assert "rng (Generator) of Mine.step" in unknown
    told = "import numpy as np\nclass Seeded:\n    def __init__(self, seed):\n        self.seed = seed\n"
    told += (
        "        self.rng = np.random.default_rng(seed)\n    def fingerprint(self):\n        return str(self.seed)\n"
    )
    told += "class Mine:\n    source = Seeded(1)\nmine = Mine()\n"
    assert identity(told).unknown == ()
    assert identity(told) != identity(told.replace("Seeded(1)", "Seeded(2)"))


def test_arrays_count_by_their_numbers():
    source = "import numpy as np\nfrom scipy.sparse import csr_array\nA = np.arange(4.0)\ndef mine():\n    return A\n"
    assert identity(source) == identity(source)
    assert identity(source) != identity(source.replace("4.0", "5.0"))
    sparse = source.replace("np.arange(4.0)", "csr_array(np.eye(3))")
    assert identity(sparse) != identity(sparse.replace("np.eye(3)", "2 * np.eye(3)"))
    assert identity(sparse).unknown == ()


@dataclass(frozen=True)
class Halving:
    start: float

    def __call__(self, k):
        return self.start / 2**k


class Bare:
    def __call__(self, k):
        return 0.1


def falling(k, start=1.0, power=1):
    return start / (1 + k) ** power


@pytest.mark.parametrize(
    ("size", "described"),
    [
        (functools.partial(falling, start=0.1), "partial(falling, start=0.1)"),
        (functools.partial(falling, start=np.float64(0.1), power=np.int64(2)), "partial(falling, start=0.1, power=2)"),
        (Halving(0.5), {"kind": "Halving", "start": 0.5}),
        (Bare(), "Bare"),
        (falling, "falling"),
        (np.float64(0.25), 0.25),
        (d3gd.schedules.Decay(0.1), {"kind": "Decay", "start": 0.1, "power": 1 / 3, "over": 1.0}),
    ],
)
def test_settings_of_every_kind_are_described_in_json(size, described):
    found = describe(d3gd.DiDGD(step_size=size))
    assert found["step_size"] == described
    assert json.loads(json.dumps(found)) == found
