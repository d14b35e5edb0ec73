"""What cannot be collected without an optional extra is left out."""

from importlib.util import find_spec

collect_ignore = (
    [] if find_spec("torch") else ["src/d3gd/torch.py", "src/d3gd/problems/torch/modules.py", "tests/pytorch"]
)
