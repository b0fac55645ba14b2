"""`make docs`: builds the site, strictly: a page in no menu, or a link that leads nowhere, fails."""

from __future__ import annotations

import os
import subprocess
import sys

from compat_tests.documentation.hooks import ROOT
from compat_tests.documentation.scripts import NoScriptsError, fetch_scripts


def main() -> int:
    """Build; return mkdocs' exit code."""
    try:
        fetch_scripts()
    except NoScriptsError as problem:
        print(problem, file=sys.stderr)
    command = [
        sys.executable,
        "-m",
        "mkdocs",
        "build",
        "--quiet",
        "--strict",
        "--config-file",
        str(ROOT / "mkdocs.yml"),
    ]
    # The theme tells of its successor at each build.
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    code = subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode
    if code == 0:
        print("The site is in build/site: open build/site/index.html")
    return code


if __name__ == "__main__":
    sys.exit(main())
