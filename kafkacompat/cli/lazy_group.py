"""A group of commands whose modules are imported when a command is called, or when all are listed."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Mapping
from importlib import import_module
from typing import Any

import click


def open_closed_streams() -> None:
    """Replace standard streams that the parent process has closed by empty ones: Python leaves None in their place."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115 (open until the process ends)


class LazyGroup(click.Group):
    """Commands by name, each at a place ``module:attribute``, beside those that are added as in any group."""

    def __init__(self, *arguments: Any, places: Mapping[str, str], **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._places = places

    def main(self, *arguments: Any, **options: Any) -> Any:
        """See click.Command.main."""
        open_closed_streams()
        try:
            return super().main(*arguments, **options)
        except OSError as problem:
            if problem.errno != errno.ENOSPC:
                raise
            # A help text or the version; the commands themselves name what they cannot write.
            click.echo("kafkacompat: the output cannot be written: the disk is full", err=True)
            sys.exit(1)

    def list_commands(self, context: click.Context) -> list[str]:
        """See click.Group.list_commands."""
        return sorted({*super().list_commands(context), *self._places})

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        """See click.Group.get_command."""
        if name in self._places and name not in self.commands:
            module, _, attribute = self._places[name].partition(":")
            self.add_command(getattr(import_module(module), attribute), name)
        return super().get_command(context, name)
