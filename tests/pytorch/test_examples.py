"""The examples keep their word."""

import importlib.util
import re

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
def test_it_runs_on_another_number_of_processes_in_the_same_folder(tmp_path):
    for ranks in (2, 3):
        code, out, err = launch("fork", ranks, ROOT / "examples/digits_cnn.py", "--quick", cwd=tmp_path)
        assert code == 0, err
        assert "PerronD3GD: difference from one process: accuracy curve 0.0e+00" in out
    assert [path.name for path in tmp_path.iterdir()] == ["digits_cnn.png"]


@pytest.mark.xdist_group("launches")
def test_the_loop_goes_on_and_starts_anew_on_another_number_of_processes_in_the_same_folder(tmp_path):
    steps = {}
    for ranks, epochs in ((2, 1), (2, 2), (3, 1)):
        words = ("--epochs", epochs, "--folder", "here")
        code, out, err = launch("torch", ranks, ROOT / "examples/optimizer_loop.py", *words, cwd=tmp_path)
        assert code == 0, err
        # torchrun does not buffer: the ends of two processes' lines may come after both.
        assert sorted(re.findall(r"agent (\d): test accuracy 0\.\d{3}", out)) == [str(i) for i in range(ranks)]
        files = [tmp_path / f"here/agent_{agent}_of_{ranks}.pt" for agent in range(ranks)]
        states = [torch.load(file, weights_only=True)["optimizer"] for file in files]
        assert [int(state["agent"]) for state in states] == list(range(ranks))
        steps[ranks, epochs] = {int(state["iteration"]) for state in states}
    assert steps == {(2, 1): {30}, (2, 2): {60}, (3, 1): {23}}  # the longest loader of 960, or of 720 samples
