"""Links of pages to files beside docs/: the site has a copy of each linked file, in a folder of its own.

Pages and files are named by their paths in the repository, such as ``docs/CLUSTER.md``.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCS = "docs/"
BESIDE = "beside"
"""The folder of the site with the copies."""

_LINK = re.compile(r"(\]\()(?!\w+:|#)([^)#\s]+)")


def linked_files(page: str, text: str) -> Iterator[str]:
    """Yield the files beside docs/ to which a page links."""
    for match in _LINK.finditer(text):
        target = _find_target(page, match[2])
        if not target.startswith(DOCS):
            yield target


def find_copies(pages: Mapping[str, str]) -> set[str]:
    """Return the files beside docs/ to which pages (path -> text) link, and those to which the linked pages link."""
    copies: set[str] = set()
    waiting = [target for page, text in pages.items() for target in linked_files(page, text)]
    while waiting:
        target = waiting.pop()
        if target not in copies:
            copies.add(target)
            if target.endswith(".md"):
                waiting.extend(linked_files(target, (ROOT / target).read_text()))
    return copies


def adapt_links(page: str, text: str) -> str:
    """Return a page as it stands in the site: links across the border of docs/ lead to pages and copies there."""
    place = posixpath.dirname(_place_in_site(page)) or "."

    def replace(match: re.Match[str]) -> str:
        return match[1] + posixpath.relpath(_place_in_site(_find_target(page, match[2])), place)

    return _LINK.sub(replace, text)


def _find_target(page: str, link: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(page), link))


def _place_in_site(path: str) -> str:
    return path.removeprefix(DOCS) if path.startswith(DOCS) else f"{BESIDE}/{path}"
