"""The README keeps its word: its code runs, its commands are understood, its links lead somewhere."""

import importlib.util
import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
import typer

from d3gd import cli
from tests.cli.conftest import Outcome

Command = Callable[..., Outcome]

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = ["README.md", "CONTRIBUTING.md", *(f"docs/{path.name}" for path in sorted((ROOT / "docs").glob("*.md")))]


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, flags=re.MULTILINE | re.DOTALL)


CODE = blocks("python")
COMMANDS = [line for block in blocks("console") for line in block.splitlines() if line.startswith("$ d3gd")]


def arguments(line: str) -> list[str]:
    """What follows `d3gd`."""
    return shlex.split(line.removeprefix("$ d3gd"), comments=True)


def expanded(word: str) -> list[str]:
    """What a shell makes of a word with wildcards."""
    return sorted(map(str, Path().glob(word))) if "*" in word else [word]


@pytest.mark.parametrize("code", CODE, ids=range(len(CODE)))
def test_code_runs_and_prints_what_is_shown(
    code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "README.md", "exec"), {"__name__": "readme"})
    printed = capsys.readouterr().out
    assert printed
    assert "diverged" not in printed
    shown = re.search(rf"{re.escape(code)}```\n\n```text\n(.*?)```", README, flags=re.DOTALL)
    assert shown is None or printed == shown[1]


def test_there_is_code_for_all_that_one_may_bring() -> None:
    assert len(CODE) >= 6
    for name in ("from_edges", "from_networkx", "weights=A", "from_functions", "problems.Problem)", "def step"):
        assert any(name in code for code in CODE), name


@pytest.mark.parametrize("line", COMMANDS, ids=lambda line: line.split("#")[0].strip("$ "))
def test_a_command_is_understood(line: str) -> None:
    name, *rest = arguments(line)
    typer.main.get_command(cli.app).commands[name].make_context(name, rest)  # type: ignore[attr-defined]


def test_the_commands_work_one_after_the_other(d3gd: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (links,), (settings,) = blocks("csv"), blocks("toml")
    Path("links.csv").write_text(links)
    Path("sites.toml").write_text(settings)
    for line in COMMANDS:
        name, *rest = [part for word in arguments(line) for part in expanded(word)]
        if name == "run":
            rest = [*rest, "--iterations", "30" if "--resume" in rest else "20"]
        if name not in ("compare", "reproduce"):  # have tests of their own, and take long
            outcome = d3gd(name, *rest)
            assert outcome.code == 0, (line, outcome)
    assert Path("plot.png").exists()
    assert {path.name for path in Path("runs").iterdir()} == {"experiment-0", "experiment-1", "sites"}


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_to_files(page: str) -> None:
    path = ROOT / page
    for target in re.findall(r"\]\(([^)#]+)", path.read_text(encoding="utf-8")):
        assert "://" in target or (path.parent / target).exists(), target


def test_names_of_the_code_in_the_conventions_exist() -> None:
    rows = re.findall(r"^\| .* \| (.*) \|$", (ROOT / "docs/conventions.md").read_text(encoding="utf-8"), re.MULTILINE)
    places = [place for row in rows for place in re.findall(r"`([\w/]+\.py)`(?:: ((?:`[\w.]+`(?:, )?)+))?", row)]
    assert len(places) > 15
    for file, names in places:
        source = (ROOT / "src/d3gd" / file).read_text(encoding="utf-8")
        for name in re.findall(r"`([\w.]+)`", names):
            for part in name.split("."):
                assert re.search(rf"^\s*(def|class) {part}\b", source, re.MULTILINE), (file, name)


def test_the_table_of_claims_has_the_form_of_its_script() -> None:
    spec = importlib.util.spec_from_file_location("claims_table", ROOT / "docs/claims_table.py")
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    one = {"label": "D3GD (global)", "shown": "29.0 % [27.1, 30.7]"}
    claim = {"claim": "C", "measure": "M", "paper": "30 %", "ours": [one], "verdict": "partly"}
    header, rule, row = script.table({"seeds": list(range(10)), "claims": [claim]}).splitlines()
    page = (ROOT / "docs/reproduction.md").read_text(encoding="utf-8")
    shown = page.split("<!-- claims -->")[1].split("<!-- /claims -->")[0].strip().splitlines()
    assert shown[:2] == [header, rule]
    assert row == "| C<br><sub>M</sub> | 30 % | global: 29.0 % [27.1, 30.7] | partly |"
