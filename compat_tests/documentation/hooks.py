"""What mkdocs does not do by itself: links to files beside docs/, and scripts that no other host serves.

mkdocs calls the functions whose names begin with ``on_`` (mkdocs.yml).
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from compat_tests.documentation.scripts import find_scripts

ROOT = Path(__file__).resolve().parents[2]
BESIDE = "beside"
"""The folder of the site with the linked files that are not in docs/."""

_LINK = re.compile(r"(\]\()((?:\.\./)+[^)#\s]+)")
_FENCES = "pymdownx.superfences"


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Load scripts from the site itself; without the script of the diagrams, show their text."""
    scripts = find_scripts()
    config.extra["polyfills"] = [f"{BESIDE}/iframe-worker.js"] if scripts else []
    if not scripts:
        config.mdx_configs[_FENCES] = {}
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the scripts, and the files beside docs/ to which pages link."""
    for name, path in find_scripts().items():
        files.append(File.generated(config, f"{BESIDE}/{name}.js", abs_src_path=str(path)))
    pages = [file for file in files if file.is_documentation_page()]
    for target in sorted({target for page in pages for target in linked_files(page.src_uri, page.content_string)}):
        text = (ROOT / target).read_text()
        if target.endswith(".md"):
            text = _LINK_INTO_DOCS.sub(r"\1../", text)
        files.append(File.generated(config, f"{BESIDE}/{target}", content=text))
    return files


_LINK_INTO_DOCS = re.compile(r"(\]\()docs/")


def linked_files(page: str, text: str) -> Iterator[str]:
    """Yield the files beside docs/ to which a page links, by their paths in the repository."""
    for match in _LINK.finditer(text):
        target = _path_in_repository(page, match[2])
        if target is not None:
            yield target


def _path_in_repository(page: str, link: str) -> str | None:
    """Return the path of a link's target, or None if it is in docs/; *page* is a path in docs/."""
    path = posixpath.normpath(posixpath.join("docs", posixpath.dirname(page), link))
    return None if path.startswith("docs/") else path


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Let links out of docs/ lead to the copies in the site."""
    folder = posixpath.dirname(page.file.src_uri)

    def lead_inside(match: re.Match[str]) -> str:
        target = _path_in_repository(page.file.src_uri, match[2])
        return match[0] if target is None else match[1] + posixpath.relpath(f"{BESIDE}/{target}", folder or ".")

    return _LINK.sub(lead_inside, markdown)


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Give pages with diagrams the script that draws them; the theme loads none if there is one."""
    if 'class="mermaid"' not in html:
        return html
    source = posixpath.relpath(f"{BESIDE}/mermaid.js", posixpath.dirname(page.file.dest_uri) or ".")
    return f'{html}\n<script src="{source}"></script>'
