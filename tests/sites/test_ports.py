import subprocess
import sys

from tests.helpers import ports
from tests.helpers.launching import ROOT


def test_two_processes_get_different_ports_though_neither_has_bound_them():
    own = ports.ports(5)
    words = f"from tests.helpers import ports; ports._next = {ports._next - 5}; print(ports.ports(5))"
    found = subprocess.run([sys.executable, "-c", words], cwd=ROOT, capture_output=True, text=True, check=True)
    assert not set(own) & set(map(int, found.stdout.strip("[]\n").split(",")))
