"""`--override name=value`, an option of every command that starts a broker."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

Function = TypeVar("Function", bound=Callable[..., Any])


def overrides_option(help_text: str) -> Callable[[Function], Function]:
    """Return the option; the command receives a dictionary named *overrides*."""
    return click.option(
        "--override", "overrides", multiple=True, metavar="NAME=VALUE", callback=_parse_overrides, help=help_text
    )


def _parse_overrides(_context: click.Context, _parameter: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    overrides = {}
    for text in values:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise click.BadParameter(f"{text!r} is not of the form name=value")
        overrides[name.strip()] = value.strip()
    return overrides
