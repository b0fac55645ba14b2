"""The menu of the site has every page, and its hooks lead links out of docs/ to copies in the site."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from compat_tests.documentation import scripts
from compat_tests.documentation.__main__ import find_problems
from compat_tests.documentation.links import adapt_links, find_copies, linked_files

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
MENU_PAGE = re.compile(r"^ +- (?:.*: )?([\w/.-]+\.md)$", re.MULTILINE)


def test_the_menu_has_every_page_once() -> None:
    """If this fails, add the page to nav in mkdocs.yml."""
    listed = MENU_PAGE.findall((ROOT / "mkdocs.yml").read_text())
    assert sorted(listed) == sorted(str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md"))


def test_the_indexes_of_folders_have_every_page() -> None:
    for folder in ("decisions", "format"):
        index = (DOCS / folder / "README.md").read_text()
        assert [path.name for path in (DOCS / folder).glob("*.md") if f"({path.name})" not in index] == ["README.md"]


def test_links_out_of_docs_lead_into_the_site() -> None:
    text = "[a](../SECURITY.md#x) [b](../kafkacompat/monitoring/dashboard.json) [c](METRICS.md#d) [e](https://example.org/)"
    assert list(linked_files("docs/CLUSTER.md", text)) == ["SECURITY.md", "kafkacompat/monitoring/dashboard.json"]
    assert adapt_links("docs/CLUSTER.md", text) == text.replace("](../", "](beside/")
    assert adapt_links(
        "docs/decisions/011-cluster-on-zookeeper.md", "[a](../../SECURITY.md) [b](../CLUSTER.md) [c](012.md)"
    ) == ("[a](../beside/SECURITY.md) [b](../CLUSTER.md) [c](012.md)")


def test_links_of_copied_pages_lead_back() -> None:
    assert (
        adapt_links("SECURITY.md", "[a](docs/SECURITY.md) [b](CHANGELOG.md)") == "[a](../SECURITY.md) [b](CHANGELOG.md)"
    )
    assert adapt_links("deploy/README.md", "[a](../docs/OPERATE.md)") == "[a](../../OPERATE.md)"
    assert {"deploy/README.md", "deploy/Dockerfile"} <= find_copies({"docs/OPERATE.md": "[a](../deploy/README.md)"})


def test_pages_that_need_another_host_or_show_markdown_are_found(tmp_path: Path) -> None:
    (tmp_path / "good.html").write_text('<a href="https://example.org/">x</a><script src="beside/mermaid.js"></script>')
    (tmp_path / "script.html").write_text('<script async src="https://unpkg.com/mermaid@11"></script>')
    (tmp_path / "table.html").write_text("<p>| name | type |</p>")
    assert find_problems(tmp_path) == [
        "script.html loads from unpkg.com: serve the file from the site",
        "table.html shows Markdown as text: indent it by four spaces in a list",
    ]


def test_fetched_scripts_need_no_npm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scripts, "BUILD", tmp_path)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(scripts.NoScriptsError, match="npm is not on the PATH"):
        scripts.fetch_scripts()
    scripts._scripts_folder().mkdir()
    scripts.fetch_scripts()
    assert set(scripts.find_scripts()) == set(scripts.PACKAGES)
