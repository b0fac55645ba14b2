"""The command line: one module for each subcommand, imported only when the subcommand is called."""

from kafkacompat.cli.commands import main

__all__ = ["main"]
