"""The pages are correct: code runs, commands parse, links and names exist."""

import pkgutil
import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import typer

from d3gd import cli
from d3gd.network import Network
from tests.cli.conftest import Outcome
from tests.helpers.launching import require

Command = Callable[..., Outcome]

ROOT = Path(__file__).parents[2]
PATHS = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), ROOT / "benchmarks/page.md"]
PAGES = {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in sorted(PATHS)}
# docs/howto/topologies.md has a test of its own, which also uses the files that its code writes.
RUN = [page for page in PAGES if page != "docs/howto/topologies.md"]
# Of generated pages, and of a changelog, names may be those of another day.
OTHER_DAYS = ("CHANGELOG.md", "docs/results/study/", "docs/results/compare/")
CURRENT = [page for page in PAGES if not page.startswith(OTHER_DAYS)]


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGES[page], flags=re.MULTILINE | re.DOTALL)


CODE = [pytest.param(page, code, id=f"{page}-{i}") for page in RUN for i, code in enumerate(blocks(page, "python"))]
COMMANDS = {
    page: [line for block in blocks(page, "console") for line in block.splitlines() if line.startswith("$ d3gd")]
    for page in PAGES
}


def prose(page: str) -> str:
    """A page without its blocks of code."""
    return re.sub(r"^```.*?^```$", "", PAGES[page], flags=re.MULTILINE | re.DOTALL)


def spans(page: str) -> list[str]:
    """What a page's prose sets as code."""
    return re.findall(r"`([^`\n]+)`", prose(page))


def arguments(line: str) -> list[str]:
    """What follows `d3gd`."""
    return shlex.split(line.removeprefix("$ d3gd"), comments=True)


def expanded(word: str) -> list[str]:
    """What a shell makes of a word with wildcards."""
    return sorted(map(str, Path().glob(word))) if "*" in word else [word]


def anchors(text: str) -> set[str]:
    """The anchors that a page's headings have."""
    headings = re.findall(r"^#+ (.+)$", re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_the_readme_is_short_and_shows_a_picture() -> None:
    assert len(PAGES["README.md"].encode()) <= 9000
    assert re.search(r"!\[[^]]+\]\((.+\.png)\)", PAGES["README.md"])


@pytest.mark.parametrize(("page", "code"), CODE)
def test_code_runs_and_prints_what_is_shown(
    page: str, code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if "import torch" in code:
        require("torch")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LOKY_MAX_CPU_COUNT", "1")  # a comparison's runs are few and short: no processes for them
    shown = re.search(rf"{re.escape(code)}```\n\n```text\n(.*?)```", PAGES[page], flags=re.DOTALL)
    short = code if shown else re.sub(r"iterations=\d+", "iterations=5", code)
    exec(compile(short, page, "exec"), {"__name__": "page"})
    printed = capsys.readouterr().out
    assert "diverged" not in printed
    assert shown is None or printed == shown[1]


def test_there_is_code_for_all_that_one_may_bring() -> None:
    code = "".join(blocks("docs/howto/bring-your-own.md", "python"))
    for name in ("from_edges", "from_networkx", "weights=A", "from_functions", "problems.Problem)"):
        assert name in code


def test_every_operation_of_the_network_is_explained() -> None:
    public = {name for name in vars(Network) if not name.startswith("_")}
    explained = set(re.findall(r"\bnet\.(\w+)", PAGES["docs/howto/write-a-method.md"]))
    assert public - explained == set()


@pytest.mark.parametrize("page", [page for page, lines in COMMANDS.items() if lines])
def test_commands_are_understood(page: str) -> None:
    for line in COMMANDS[page]:
        name, *rest = arguments(line)
        typer.main.get_command(cli.app).commands[name].make_context(name, rest)  # type: ignore[attr-defined]


def test_the_commands_work_one_after_the_other(d3gd: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    page = "docs/tutorial/commands.md"
    (links,), (settings,) = blocks(page, "csv"), blocks(page, "toml")
    Path("links.csv").write_text(links)
    Path("sites.toml").write_text(settings)
    for line in COMMANDS[page]:
        name, *rest = [part for word in arguments(line) for part in expanded(word)]
        if name == "run":
            rest = [*rest, "--iterations", "30" if "--resume" in rest else "20"]
        if name not in ("compare", "reproduce", "sweep"):  # have tests of their own, and take long
            outcome = d3gd(name, *rest)
            assert outcome.code == 0, (line, outcome)
    assert Path("plot.png").exists()
    assert {path.name for path in Path("runs").iterdir()} == {"experiment-0", "experiment-1", "seen", "sites"}


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_to_files_and_headings(page: str) -> None:
    path = ROOT / page
    if page == "benchmarks/page.md":
        path = ROOT / "docs/results/benchmarks.md"  # what it becomes
    targets = re.findall(r"\]\(([^)\s]+)\)", prose(page)) + re.findall(r'src="([^"]+)"', prose(page))
    for target in targets:
        if "://" in target:
            continue
        file, _, anchor = target.partition("#")
        found = (path.parent / file).resolve() if file else path
        assert found.exists(), target
        assert not anchor or anchor in anchors(found.read_text(encoding="utf-8")), target


@pytest.mark.parametrize("page", CURRENT)
def test_files_that_are_named_exist(page: str) -> None:
    homes = [ROOT, ROOT / "src/d3gd", ROOT / "benchmarks", ROOT / "docs"]
    for file in (name for span in spans(page) for name in re.findall(r"[\w/]+/\w+\.py\b|^\w+\.py$", span)):
        assert any((home / file).exists() for home in homes), file


@pytest.mark.parametrize("page", CURRENT)
def test_names_of_the_package_exist(page: str) -> None:
    for name in (name for span in spans(page) for name in re.findall(r"^d3gd(?:\.[a-zA-Z]\w*)+", span)):
        if name.startswith("d3gd.torch"):
            require("torch")
        assert pkgutil.resolve_name(name) is not None, name


def places(page: str) -> Iterator[tuple[str, list[str]]]:
    """The files that a page's tables name, each with the names that it is said to hold."""
    for row in re.findall(r"^\|.*\|$", PAGES[page], re.MULTILINE):
        for file, names in re.findall(r"`([\w/]+\.py)`(?:: ((?:`[\w.]+`(?:, )?)+))?", row):
            yield file, re.findall(r"`([\w.]+)`", names)


@pytest.mark.parametrize(("page", "least"), [("reference/conventions.md", 15), ("explanation/walkthrough.md", 20)])
def test_names_of_the_code_are_where_tables_say(page: str, least: int) -> None:
    found = list(places(f"docs/{page}"))
    assert len(found) > least
    for file, names in found:
        source = (ROOT / "src/d3gd" / file).read_text(encoding="utf-8")
        for name in names:
            for part in name.split("."):
                assert re.search(rf"^\s*(def|class) {part}\b", source, re.MULTILINE), (file, name)


def test_code_that_the_walkthrough_quotes_is_the_code() -> None:
    lines = [line.strip() for line in (ROOT / "src/d3gd/algorithms/didgd.py").read_text(encoding="utf-8").splitlines()]
    quoted = blocks("docs/explanation/walkthrough.md", "py")
    assert quoted
    for block in quoted:
        first, *rest = [line.strip() for line in block.splitlines()]
        place = lines.index(first)
        assert lines[place + 1 : place + 1 + len(rest)] == rest
