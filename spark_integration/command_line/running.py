"""What all commands of `kafkacompat spark` have in common: errors in a sentence, exit codes, the summary at the end.

Imports no pyspark before a command runs.
"""

from __future__ import annotations

import functools
import importlib.util
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from spark_integration.command_line import checks
from spark_integration.command_line.options import OTHER_GROUP, PipelineCommand, SessionOptions, option
from spark_integration.errors import PipelineError, explain_failure
from spark_integration.queries.console import say
from spark_integration.queries.summary import Summary, print_summary
from spark_integration.runtime.packages import NO_PYSPARK
from spark_integration.runtime.settings import check_master_and_memory

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXIT_NOT_DONE = 2


def pipeline_command(name: str, example: str) -> Callable[[Callable[..., Summary]], PipelineCommand]:
    """Return a decorator that makes a command of a function that does the work and returns its summary.

    Exit code 0: done; 1: done, and it found what the user asked to be warned of; 2: not done, and a sentence says why.
    """

    def decorate(work: Callable[..., Summary]) -> PipelineCommand:
        @functools.wraps(work)
        def run(as_json: bool, stacktrace: bool, **values: object) -> None:
            with _explained_failures(stacktrace):
                if importlib.util.find_spec("pyspark") is None:
                    raise PipelineError(NO_PYSPARK)
                summary = work(**values)
                print_summary(summary, as_json)
                sys.exit(summary.exit_code)

        as_json = option(
            "--json", "as_json", is_flag=True, group=OTHER_GROUP, help="Print the summary as one JSON object."
        )
        stacktrace = option(
            "--stacktrace", is_flag=True, group=OTHER_GROUP, help="Show the stack trace of a failure, not a sentence."
        )
        settings = {"show_default": True}
        command: PipelineCommand = click.command(name, cls=PipelineCommand, context_settings=settings, example=example)(
            stacktrace(as_json(run))
        )
        return command

    return decorate


def check_before_start(
    session: SessionOptions,
    *,
    clusters: Mapping[str, Mapping[str, str]],
    written: Mapping[str, str | Path | None] | None = None,
    archives: Mapping[str, str | None] | None = None,
) -> None:
    """Check addresses and local paths, each by the option that names it, before a JVM starts; raises PipelineError.

    *clusters* are Spark's options of each, *written* the folders that are written to, *archives* those that are read.
    Paths on other file systems than this machine's are left to Spark.
    """
    check_master_and_memory(session.master, session.driver_memory)
    for named, check in ((written, checks.check_written_folder), (archives, checks.check_archive)):
        for name, path in (named or {}).items():
            local = checks.local_path(str(path), session.master, session.conf) if path is not None else None
            if local is not None:
                check(name, local)
    for name, cluster in clusters.items():
        if cluster:
            checks.check_client_files(cluster)
            checks.check_reachable(name, cluster["kafka.bootstrap.servers"])


@contextmanager
def spark_session(name: str, options: SessionOptions, packages: tuple[str, ...] = ()) -> Iterator[SparkSession]:
    """Run Spark for the block, with the user's options."""
    from spark_integration.session import start_session

    spark = start_session(
        f"kafkacompat {name}",
        master=options.master,
        memory=options.driver_memory,
        packages=packages,
        configs=dict(options.conf),
        say=say,
    )
    try:
        yield spark
    finally:
        spark.stop()


@contextmanager
def _explained_failures(stacktrace: bool) -> Iterator[None]:
    """End the process with a sentence instead of an exception's stack trace, unless *stacktrace* asks for it."""
    try:
        yield
    except KeyboardInterrupt:
        click.echo("Error: interrupted; run it again to continue", err=True)
        sys.exit(EXIT_NOT_DONE)
    except Exception as failure:
        if stacktrace or not isinstance(failure, _expected_failures()):
            raise
        sentence = str(failure) if isinstance(failure, PipelineError) else explain_failure(failure)
        click.echo(f"Error: {sentence}", err=True)
        sys.exit(EXIT_NOT_DONE)


def _expected_failures() -> tuple[type[BaseException], ...]:
    """Return the exceptions that a sentence explains; those of Spark exist only where it is installed."""
    if importlib.util.find_spec("pyspark") is None:
        return PipelineError, OSError
    errors: Any = importlib.import_module("pyspark.errors")
    protocol: Any = importlib.import_module("py4j.protocol")
    return PipelineError, OSError, errors.PySparkException, protocol.Py4JError
