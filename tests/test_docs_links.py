"""Every relative link of the pages leads to a file, and every anchor to a heading."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
DOCS = sorted((ROOT / "docs").rglob("*.md"))
PAGES = [*sorted(ROOT.glob("*.md")), *DOCS]
SOURCES = ("kafkacompat", "wire", "handlers", "storage", "spark_integration", "bench", "compat_tests", "tests")

LINK = re.compile(r"\[[^\[\]]*\]\(([^()\s]+)\)")
FENCE = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`[^`\n]*`")
HEADING = re.compile(r"^#{1,6} +(.+?) *#*$", re.MULTILINE)
NAMED = re.compile(r"<a (?:id|name)=\"([^\"]+)\"")
PAGE_NAME = re.compile(r"docs/[\w/.-]+\.md")


def list_anchors(text: str) -> set[str]:
    """Return the anchors that GitHub gives a page's headings, and those that the page names itself."""
    text = FENCE.sub("", text)
    headings = Counter[str]()
    slugs = set()
    for heading in HEADING.findall(text):
        words = LINK.sub(lambda link: link[0][1 : link[0].index("]")], heading).lower()
        slug = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
        slugs.add(f"{slug}-{headings[slug]}" if headings[slug] else slug)
        headings[slug] += 1
    return slugs | set(NAMED.findall(text))


def relative_links(text: str) -> Iterator[str]:
    """Yield the targets of a page's links that are no addresses on the web; code holds no links."""
    for target in LINK.findall(CODE.sub("``", FENCE.sub("", text))):
        if not re.match(r"[a-z][a-z+.-]*:", target):
            yield target


def broken_links(page: Path) -> list[str]:
    """Return a page's links that lead to no file, or to no heading of a page."""
    broken = []
    for target in relative_links(page.read_text()):
        name, _, anchor = target.partition("#")
        path = page.parent / name if name else page
        if not path.exists() or (anchor and anchor not in list_anchors(path.read_text())):
            broken.append(target)
    return broken


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page: Path) -> None:
    assert broken_links(page) == []


def test_broken_links_and_anchors_are_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    (tmp_path / "other.md").write_text("# Title: `code`, more\n\n## Twice\n\n## Twice\n\n```\n# no heading\n```\n")
    good = "[a](other.md) [b](other.md#title-code-more) [c](other.md#twice-1) [d](#here) [e](https://example.org/x)"
    bad = ["missing.md", "other.md#no-heading", "other.md#twice-2", "#there"]
    page.write_text(f"# Here\n\n{good} `[f](missing.md)`\n\n" + " ".join(f"[x]({target})" for target in bad))
    assert broken_links(page) == bad


def test_pages_named_in_the_sources_exist() -> None:
    modules = {path.resolve() for folder in SOURCES for path in (ROOT / folder).rglob("*.py")}
    named = {(path, name) for path in modules - {Path(__file__)} for name in PAGE_NAME.findall(path.read_text())}
    assert named
    assert {f"{path.relative_to(ROOT)}: {name}" for path, name in named if not (ROOT / name).exists()} == set()


@pytest.mark.parametrize("page", DOCS, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_page_installs_from_an_index(page: Path) -> None:
    """The package is on no index: ``pip install '.[spark]'`` in a clone is the way."""
    assert "pip install 'kafkacompat" not in page.read_text()
