"""The examples keep their word."""

import importlib.util

import matplotlib as mpl
import pytest
import torch

from tests.helpers.launching import ROOT, launch


@pytest.fixture
def digits_cnn(monkeypatch, tmp_path):
    """The example in its quick form, in a folder of its own."""
    spec = importlib.util.spec_from_file_location("digits_cnn", ROOT / "examples/digits_cnn.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr("sys.argv", ["digits_cnn.py", "--quick"])
    monkeypatch.chdir(tmp_path)
    threads, backend = torch.get_num_threads(), mpl.get_backend()
    yield module
    torch.set_num_threads(threads)
    mpl.use(backend)


def test_the_network_on_digits_trains_and_is_drawn(digits_cnn, tmp_path, capsys):
    digits_cnn.main()
    printed = capsys.readouterr().out
    assert [line.split()[0] for line in printed.splitlines()[1:3]] == ["Di-DGD", "PerronD3GD"]
    assert (tmp_path / "digits_cnn.png").read_bytes().startswith(b"\x89PNG")


def test_its_help_says_how_to_start_it(digits_cnn, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["digits_cnn.py", "--help"])
    with pytest.raises(SystemExit, match="0"):
        digits_cnn.main()
    printed = capsys.readouterr().out
    assert "torchrun --nproc-per-node 8 examples/digits_cnn.py" in printed
    assert "--quick" in printed


def test_a_block_of_agents_has_the_data_and_the_start_of_the_whole(digits_cnn):
    whole, block = digits_cnn.problem(1), digits_cnn.problem(1, [5, 2])
    assert (block.fingerprints() == whole.fingerprints()[[5, 2]]).all()
    assert (block.start() == whole.start()).all()


@pytest.mark.xdist_group("launches")
def test_the_loop_trains_and_saves_and_starts_anew_on_another_number_of_processes(tmp_path):
    script = ROOT / "examples/optimizer_loop.py"
    for ranks in (2, 3):
        code, out, err = launch("torch", ranks, script, "--steps", "3", "--folder", "here", cwd=tmp_path)
        assert code == 0, err
        assert "after 3 steps" in out
        assert err.count("opt.mix_buffers(model)") == 1
    states = [torch.load(tmp_path / f"here/agent_{agent}_of_3.pt", weights_only=True) for agent in range(3)]
    assert [int(state["optimizer"]["agent"]) for state in states] == [0, 1, 2]
