"""What mkdocs does not do by itself: links to files beside docs/, and scripts that no other host serves.

mkdocs calls the functions whose names begin with ``on_`` (mkdocs.yml).
"""

from __future__ import annotations

import posixpath

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from compat_tests.documentation.links import BESIDE, DOCS, ROOT, adapt_links, find_copies
from compat_tests.documentation.scripts import find_scripts

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
    pages = {f"{DOCS}{file.src_uri}": file.content_string for file in files if file.is_documentation_page()}
    for target in sorted(find_copies(pages)):
        files.append(File.generated(config, f"{BESIDE}/{target}", content=(ROOT / target).read_text()))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Let links out of docs/ lead to the copies in the site."""
    source = page.file.src_uri
    return adapt_links(
        source.removeprefix(f"{BESIDE}/") if source.startswith(f"{BESIDE}/") else f"{DOCS}{source}", markdown
    )


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Give pages with diagrams the script that draws them; the theme loads none if there is one."""
    if 'class="mermaid"' not in html:
        return html
    source = posixpath.relpath(f"{BESIDE}/mermaid.js", posixpath.dirname(page.file.dest_uri) or ".")
    return f'{html}\n<script src="{source}"></script>'
