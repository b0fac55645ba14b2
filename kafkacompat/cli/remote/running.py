"""Runs the work of a command: connects, and turns what goes wrong into one sentence and an exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Concatenate, NoReturn, ParamSpec

import click

from kafkacompat.cli.columns import escape_control_characters
from kafkacompat.cli.remote.cluster import RemoteCluster, connect_cluster
from kafkacompat.cli.remote.errors import EXIT_DONE, EXIT_REFUSED, EXIT_UNUSABLE, RemoteError
from kafkacompat.cli.remote.options import Target
from kafkacompat.cli.remote.output import Output
from kafkacompat.cli.requests import NoResponseError, UnservedRequestError
from kafkacompat.storage.files.os_errors import describe_error

Options = ParamSpec("Options")


def run_command(
    target: Target,
    work: Callable[Concatenate[RemoteCluster, Output, Options], int | None],
    *arguments: Options.args,
    **options: Options.kwargs,
) -> NoReturn:
    """Do *work* on the cluster, and exit with its exit code, or that of success."""

    def connect_and_work() -> int | None:
        with connect_cluster(target) as cluster:
            return work(cluster, Output(as_json=target.as_json), *arguments, **options)

    sys.exit(run_guarded(connect_and_work))


def run_guarded(work: Callable[[], int | None]) -> int:
    """Do *work*; returns the exit code. A closed pipe ends it quietly, and any other problem is one sentence."""
    try:
        return work() or EXIT_DONE
    except BrokenPipeError:
        _discard_output()
        return EXIT_DONE
    except UnservedRequestError as problem:
        return _refuse(f"the broker cannot do this: {problem}", EXIT_REFUSED)
    except NoResponseError as problem:
        return _refuse(f"no broker answers: {problem}", EXIT_UNUSABLE)
    except UnicodeEncodeError:
        return _refuse(
            f"{_find_foreign_text()} is no UTF-8: correct it, or check the locale of the shell", EXIT_UNUSABLE
        )
    except ValueError as problem:
        return _refuse(str(problem), EXIT_UNUSABLE)
    except RemoteError as problem:
        return _refuse(str(problem), EXIT_REFUSED)
    except OSError as problem:
        _discard_output()
        return _refuse(f"the output cannot be written: {describe_error(problem)}", EXIT_REFUSED)


def _refuse(sentence: str, code: int) -> int:
    with suppress(BrokenPipeError):
        click.echo(escape_control_characters(f"kafkacompat: {sentence}"), err=True)
    return code


def _find_foreign_text() -> str:
    """Return the first argument that is no UTF-8; texts of standard input are not shown, as they may be passwords."""
    foreign = next((text for text in sys.argv if any("\udc80" <= character <= "\udcff" for character in text)), None)
    return "the input" if foreign is None else f"the argument {foreign!r}"


def _discard_output() -> None:
    """Let what Python flushes at its end go nowhere."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
