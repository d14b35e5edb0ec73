"""The notebooks of the tutorial run from top to bottom in a kernel, and show what they make."""

import re
from pathlib import Path

import pytest

from tests.helpers.launching import require
from tests.helpers.notebooks import notebook

FOLDER = Path(__file__).parents[2] / "docs/tutorial"
CELL = re.compile(r"^```\{code-cell\} ipython3\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NOTEBOOKS = {
    path.stem: CELL.findall(text)
    for path in sorted(FOLDER.glob("*.md"))
    if "kernelspec:" in (text := path.read_text(encoding="utf-8"))
}


def test_there_are_two():
    assert set(NOTEBOOKS) == {"first-steps", "your-own-method"}


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_its_cells_run_one_after_the_other(name, tmp_path):
    cells = NOTEBOOKS[name]
    if any("import torch" in cell for cell in cells):
        require("torch")
    with notebook(tmp_path) as opened:
        shown = [opened.show(cell) for cell in cells]
    kinds = [kind for outputs in shown for kind in outputs]
    assert "text/html" in kinds  # results, graphs, problems and comparisons as tables
    assert "image/png" in kinds  # figures, without pyplot


def test_progress_is_shown_without_widgets(tmp_path):
    code = """import d3gd, sys
problem = d3gd.problems.quadratic(agents=4, dim=2)
d3gd.run(d3gd.DiDGD(step_size=0.1), d3gd.graphs.ring(4), problem, iterations=20, progress=True)
print("ipywidgets" in sys.modules)"""
    with notebook(tmp_path) as opened:
        printed = opened.run(code)
    assert "DiDGD: 20 of 20 (100 %)" in printed
    assert printed.endswith("False\n")
