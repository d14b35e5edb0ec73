"""A site's script: a program that trains in place of a problem and an algorithm, and calls ``d3gd.sites.connect``."""

import os
import sys
from pathlib import Path
from typing import NoReturn

from d3gd.errors import SettingsError
from d3gd.sites.settings import SiteFile

_SITE = "D3GD_SITE"  # the site's file, for the script


def given(path: str | Path | None) -> Path:
    """Return the path of a site's file: the one that is given, or that with which this script was started."""
    found = os.environ.get(_SITE) if path is None else path
    if found is None:
        raise SettingsError(
            "connect was given no site's file; pass its path, or name this script in it (script = ...) and start it "
            "with: d3gd site run site.toml"
        )
    return Path(found)


def start(file: SiteFile, name: str, *, resume: bool) -> NoReturn:
    """Become the script, in the folder of the site's file: signals reach it, and its exit code is this process's.

    Args:
        file: The site's file.
        name: The script, as the file names it.
        resume: Whether the script is asked to resume: it is passed ``--resume``.
    """
    folder = file.path.resolve().parent
    script = folder / name
    if not script.is_file():
        raise SettingsError(f"{script} is not there, which {file.path.name} names as its script; put it there")
    sys.stdout.flush()
    sys.stderr.flush()
    os.chdir(folder)
    words = [sys.executable, str(script), *(["--resume"] if resume else [])]
    os.execve(sys.executable, words, {**os.environ, _SITE: str(file.path.name)})
