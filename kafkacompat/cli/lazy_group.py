"""A group of commands whose modules are imported when a command is called, or when all are listed."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import click


class LazyGroup(click.Group):
    """Commands by name, each at a place ``module:attribute``, beside those that are added as in any group."""

    def __init__(self, *arguments: Any, places: Mapping[str, str], **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._places = places

    def list_commands(self, context: click.Context) -> list[str]:
        """See click.Group.list_commands."""
        return sorted({*super().list_commands(context), *self._places})

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        """See click.Group.get_command."""
        if name in self._places and name not in self.commands:
            module, _, attribute = self._places[name].partition(":")
            self.add_command(getattr(import_module(module), attribute), name)
        return super().get_command(context, name)
