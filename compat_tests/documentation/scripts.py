"""The two scripts that the theme would load from another host, taken from npm once and kept under ``build``."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from spark_integration.runtime.maven import BUILD, build_once

PACKAGES = {"mermaid": ("11.17.2", "dist/mermaid.min.js"), "iframe-worker": ("1.0.4", "shim/index.js")}
"""Package -> its version, and its file in it: diagrams, and the search in a site that is opened from a folder."""
FETCH_SECONDS = 300


class NoScriptsError(Exception):
    """The scripts cannot be had; the text says why, in one sentence."""


def find_scripts() -> dict[str, Path]:
    """Return the scripts by package; empty if they were never fetched."""
    folder = _scripts_folder()
    return {name: folder / f"{name}.js" for name in PACKAGES} if folder.is_dir() else {}


def fetch_scripts() -> None:
    """Fetch the scripts unless they are there; raises NoScriptsError."""
    if not find_scripts() and shutil.which("npm") is None:
        raise NoScriptsError("npm is not on the PATH, so diagrams are shown as their text: install Node.js")
    try:
        build_once(_scripts_folder(), _fetch_into)
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as problem:
        raise NoScriptsError(
            f"npm did not deliver the scripts, so diagrams are shown as their text: {_describe_failure(problem)}"
        ) from None


def _describe_failure(problem: subprocess.CalledProcessError | subprocess.TimeoutExpired) -> str:
    """Return the words of a command that failed, on one line."""
    words = " ".join((problem.stderr or b"").decode(errors="replace").split())
    return f"{problem} {words}".strip()


def _scripts_folder() -> Path:
    return BUILD / "-".join(["site-scripts", *(version for version, _ in PACKAGES.values())])


def _fetch_into(folder: Path) -> None:
    for name, (version, member) in PACKAGES.items():
        _run_command(["npm", "pack", "--loglevel=error", f"{name}@{version}"], folder)
        archive = folder / f"{name}-{version}.tgz"
        _run_command(["tar", "xzf", str(archive), f"package/{member}"], folder)
        (folder / "package" / member).rename(folder / f"{name}.js")
        archive.unlink()
    shutil.rmtree(folder / "package")


def _run_command(command: list[str], folder: Path) -> None:
    subprocess.run(
        command, cwd=folder, check=True, capture_output=True, timeout=FETCH_SECONDS, stdin=subprocess.DEVNULL
    )
