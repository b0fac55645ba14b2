"""Pages of the documentation that runs write their figures into, between two marker comments."""

from __future__ import annotations

from collections.abc import Sequence


def replace_section(page: str, begin: str, end: str, text: str) -> str:
    """Return a page with *text* between its markers; raises ValueError without them."""
    before, found_begin, rest = page.partition(begin)
    _, found_end, after = rest.partition(end)
    if not found_begin or not found_end:
        raise ValueError(f"the page has no {begin} and {end}")
    return f"{before}{begin}{text}{end}{after}"


def render_table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    """Render a table in Markdown."""
    return "".join(f"| {' | '.join(row)} |\n" for row in [head, ("---",) * len(head), *rows])
