"""What cannot be collected without PyTorch or a browser is left out, and said so in one line."""

import os
from importlib.util import find_spec
from shutil import which

# Two workers fill the cores: threads of BLAS, on matrices as small as those of tests, only wait for each other.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
TORCH = find_spec("torch") is not None
BROWSER = bool(find_spec("selenium") and which("chromium") and which("chromedriver"))

NEEDS_TORCH = ["src/d3gd/torch", "src/d3gd/kernels/tensors.py", "src/d3gd/problems/torch/modules.py", "tests/pytorch"]
collect_ignore = [] if TORCH else NEEDS_TORCH
collect_ignore += [] if BROWSER else ["tests/report"]


def pytest_terminal_summary(terminalreporter):
    """Say what was left out."""
    if not TORCH:
        terminalreporter.write_line("left out: all that needs PyTorch; install it with: pip install 'd3gd[torch]'")
    if not BROWSER:
        terminalreporter.write_line(
            "left out: reports in a browser; get one with: apt-get install chromium chromium-driver, and selenium with "
            "pip install 'd3gd[dev]'"
        )
