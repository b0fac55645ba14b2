"""`make docs`: builds the site, strictly: a page in no menu, a link that leads nowhere, or a script of another host fails."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from compat_tests.documentation.links import ROOT
from compat_tests.documentation.scripts import NoScriptsError, fetch_scripts

SITE = ROOT / "build" / "site"
_LOADED = re.compile(r"<(?:script|link|img|iframe)\b[^>]*?(?:src|href)=[\"']?(?:https?:)?//([^/\"' >]+)")
_UNREADABLE = re.compile(r"<p>\||<p>```")
"""Tables and code that Markdown on the site does not see as such, though it does elsewhere."""


def main() -> int:
    """Build and check; return the exit code."""
    try:
        fetch_scripts()
    except NoScriptsError as problem:
        print(problem, file=sys.stderr)
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--config-file", str(ROOT / "mkdocs.yml")]
    # The theme reports its successor at each build. A quiet build would also be less strict: it counts what it prints.
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    for line in done.stderr.splitlines():
        if line and not line.startswith("INFO"):
            print(line, file=sys.stderr)
    if done.returncode != 0:
        return done.returncode
    problems = find_problems(SITE)
    print("\n".join(problems) if problems else f"The site is in {SITE.relative_to(ROOT)}: open index.html there")
    return 1 if problems else 0


def find_problems(site: Path) -> list[str]:
    """Return a sentence for each page that needs another host, or that shows Markdown as text."""
    problems = []
    for page in sorted(site.rglob("*.html")):
        text = page.read_text()
        hosts = sorted(set(_LOADED.findall(text)))
        problems += [f"{page.relative_to(site)} loads from {host}: serve the file from the site" for host in hosts]
        if _UNREADABLE.search(text):
            problems.append(f"{page.relative_to(site)} shows Markdown as text: indent it by four spaces in a list")
    return problems


if __name__ == "__main__":
    sys.exit(main())
