"""The command line: one module a subcommand, each imported only when it is called."""

from kafkacompat.cli.commands import main

__all__ = ["main"]
