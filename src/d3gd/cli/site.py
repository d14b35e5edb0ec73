# ruff: noqa: D301 - the \b that keeps typer from joining lines must be the character itself
"""One process per site: keys, files, and the run itself."""

import logging
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from d3gd.cli.base import DIVERGED, FAILED, INTERRUPTED, TERMINATED, StoppedError, app
from d3gd.errors import SettingsError, printable

site = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
app.add_typer(site, name="site", help="Train between hosts that start by themselves, without a server.")

File = Annotated[Path, typer.Argument(metavar="SITE.toml", help="The site's file; see d3gd site init.")]


@site.callback()
def require_extra() -> None:
    """Train between hosts that start by themselves, without a server."""
    try:
        import zmq  # noqa: F401
    except ImportError as error:
        raise SettingsError(f"sites need pyzmq ({error}); install it with: pip install 'd3gd[sites]'") from None


@site.command()
def keygen(
    path: Annotated[Path, typer.Argument(help="The file for the secret key.")] = Path("site.secret"),
) -> None:
    """Make a site's keys: the secret one into a file, the public one printed.

    Hand out the public key; the secret one stays where it is.

    \b
    Example:
      d3gd site keygen oslo/site.secret
    """
    from d3gd.runs import files
    from d3gd.sites import keys

    files.make_folder(path.parent)
    pair = keys.generate()
    keys.write_secret(path, pair)
    print(pair.public)


@site.command()
def init(
    links: Annotated[Path, typer.Argument(metavar="LINKS.csv", help="The columns source,target,address[,dials].")],
    template: Annotated[Path, typer.Argument(metavar="COMMON.toml", help="What all sites have in common.")],
    out: Annotated[Path, typer.Option(help="The folder for the sites' folders.")] = Path("sites"),
    session: Annotated[str, typer.Option(help="The name of the training.")] = "training",
    keys: Annotated[
        Path | None, typer.Option(metavar="KEYS.csv", help="The columns name,key: public keys that sites have made.")
    ] = None,
) -> None:
    """Write a folder per site, to hand out.

    A row of LINKS.csv lets the target hear the source, which it dials at the address; without an address, or with
    `source` in the column dials, the source dials the target. Without --keys, keys are made here.

    \b
    Example:
      d3gd site init links.csv common.toml --out sites
    """
    from d3gd.sites.init import FILE, read_keys, read_links, write_sites

    public = None if keys is None else read_keys(keys)
    folders = write_sites(read_links(links), template, out, session=session, public=public)
    for folder in folders:
        print(printable(f"wrote {folder}"))
    print(printable(f"next, at each site:  {shlex.join(['d3gd', 'site', 'check', FILE])}"))


@site.command()
def run(
    file: File,
    resume: Annotated[bool, typer.Option("--resume", help="Continue from the folder's newest checkpoint.")] = False,
    progress: Annotated[bool | None, typer.Option(help="By default only on a terminal.")] = None,
) -> None:
    """Run a site, from its file into its folder.

    It waits for the others, trains with them, and ends with its own model. After a stop or a crash, --resume rejoins
    the others at their iteration. Exit code 3 means that the run diverged. If the file names a script, this command
    becomes it: d3gd.sites.connect() finds the file, --resume is passed on, the exit code is the script's.

    \b
    Examples:
      d3gd site run site.toml
      d3gd site run site.toml --resume
    """
    from d3gd.cli import screens
    from d3gd.distributed.interrupts import TerminatedError
    from d3gd.runs import folder as layout
    from d3gd.sites import script
    from d3gd.sites.run import run as run_site
    from d3gd.sites.settings import load

    plan = load(file)
    if plan.settings.script is not None:
        script.start(plan, plan.settings.script, resume=resume)
    if not (resume and layout.is_started(plan.folder)):
        layout.require_free(plan.folder)
        if resume:
            print(f"nothing to resume in {plan.folder}: starting from the beginning", file=sys.stderr)
    try:
        with _logging_to_stderr():
            result = run_site(plan, resume=resume, progress=progress)
    except (KeyboardInterrupt, TerminatedError) as stop:
        code = INTERRUPTED if isinstance(stop, KeyboardInterrupt) else TERMINATED
        again = shlex.join(["d3gd", "site", "run", str(file), "--resume"])
        raise StoppedError(f"interrupted; continue with: {again}", code) from None
    screens.show_outcome(result, plan.folder)
    raise typer.Exit(DIVERGED if result.status == "diverged" else 0)


@site.command()
def check(
    file: File,
    seconds: Annotated[float, typer.Option(help="How long to wait for answers.")] = 10.0,
) -> None:
    """Find out what is wrong with a site's links, and at whose end: one line per link.

    Run it while the site does not run; the others may run, or check at the same time.

    \b
    Example:
      d3gd site check site.toml
    """
    from d3gd.sites.doctor import examine
    from d3gd.sites.settings import load

    logging.getLogger("d3gd.sites").addHandler(logging.NullHandler())  # the lines below say the same, and more
    findings = examine(load(file), seconds)
    for finding in findings:
        print(printable(f"{'ok    ' if finding.sound else 'wrong '} {finding.text}"))
    raise typer.Exit(0 if all(finding.sound for finding in findings) else FAILED)


@site.command()
def status(file: File) -> None:
    """Show whom a running site hears, since when, and what was lost.

    \b
    Example:
      d3gd site status site.toml
    """
    from d3gd.sites.screen import lines
    from d3gd.sites.settings import load
    from d3gd.sites.status import read

    for line in lines(read(load(file).folder)):
        print(printable(line))


@site.command()
def collect(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN", help="Folders of all sites' runs, brought together.")],
    out: Annotated[Path, typer.Option(help="The folder for the result.")] = Path("collected"),
) -> None:
    """Put the runs of all sites into one result, with every site's curves.

    \b
    Example:
      d3gd site collect oslo/run bergen/run tromso/run --out together
    """
    from d3gd.cli import screens
    from d3gd.runs import folder as layout
    from d3gd.sites.collect import collected

    layout.require_free(out)
    result = collected(runs)
    result.save(out)
    screens.show_outcome(result, out)


@contextmanager
def _logging_to_stderr() -> Iterator[None]:
    """Log to standard error, and to nothing else, while a site runs."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    logger = logging.getLogger("d3gd.sites")
    level, propagate = logger.level, logger.propagate
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    logger.propagate = False
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
        logger.propagate = propagate
