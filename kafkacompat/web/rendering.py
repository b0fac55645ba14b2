"""Pages from templates: every value is escaped, and a name that a template does not receive is an error."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from kafkacompat import __version__
from kafkacompat.web.figures import format_bytes, format_number, format_time
from kafkacompat.web.text import reveal_hidden

FOLDER = Path(__file__).parent
STATIC_TYPES = {
    "ui.css": b"text/css; charset=utf-8",
    "ui.js": b"text/javascript; charset=utf-8",
    "icon.svg": b"image/svg+xml",
}


class StaticFiles:
    """The style, the script and the icon; ``version`` changes with any of them."""

    def __init__(self) -> None:
        self.contents = {name: (FOLDER / "static" / name).read_bytes() for name in STATIC_TYPES}
        self.version = hashlib.sha256(b"".join(self.contents.values())).hexdigest()[:12]


ESCAPE = "~"
"""Comes before a part of a path that a browser would change, and before each part that begins with it."""


def read_part(part: str) -> str:
    """Return the name that `build_link` wrote as a part of a path."""
    return part.removeprefix(ESCAPE)


def _write_part(part: str) -> str:
    # Browsers resolve "." and "..", encoded or not, and some proxies merge slashes.
    is_escaped = part in ("", ".", "..") or part.startswith(ESCAPE)
    return quote(ESCAPE + part if is_escaped else part, safe="", errors="replace")


def build_link(path: tuple[str, ...], **query: object) -> str:
    """Return the address of a page below /ui; values that are None or "" are left out of the query."""
    text = urlencode({name: str(value) for name, value in query.items() if value is not None and value != ""})
    return "/".join(("/ui", *map(_write_part, path))) + (f"?{text}" if text else "")


class Renderer:
    """Fills in templates."""

    def __init__(self, static: StaticFiles) -> None:
        self._environment = environment = Environment(
            loader=FileSystemLoader(FOLDER / "templates"),
            autoescape=True,
            undefined=StrictUndefined,
            auto_reload=False,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        environment.filters.update(
            size=lambda value: "–" if value is None else format_bytes(value),
            number=lambda value: "–" if value is None else format_number(value),
            time=format_time,
            reveal=reveal_hidden,
        )
        environment.globals.update(link=build_link, version=__version__, static_version=static.version)

    def compile(self, templates: Iterable[str]) -> None:
        """Compile templates, which takes tens of milliseconds, so that the first page of each takes no longer than others."""
        for template in templates:
            self._environment.get_template(template)

    def render(self, template: str, values: Mapping[str, Any]) -> bytes:
        """Return a page in UTF-8; takes milliseconds."""
        return self._environment.get_template(template).render(values).encode("utf-8", "replace")
