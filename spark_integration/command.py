"""What all commands of `kafkacompat spark` do alike: errors in a sentence, exit codes, what was done at the end."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from spark_integration.console import Summary, console, tell
from spark_integration.errors import PipelineError, sentence_of
from spark_integration.options import SessionOptions
from spark_integration.session import start_session

EXIT_NOT_DONE = 2


def pipeline(name: str) -> Callable[[Callable[..., Summary]], click.Command]:
    """Make a command of a function that does the work and returns what it did.

    Exit code 0: done; 1: done, and it found what the user asked to be told of; 2: not done, and a sentence says why.
    """

    def decorate(work: Callable[..., Summary]) -> click.Command:
        @functools.wraps(work)
        def run(as_json: bool, stacktrace: bool, **values: object) -> None:
            with _explained(stacktrace):
                summary = work(**values)
                tell(summary, as_json)
                sys.exit(summary.exit_code)

        as_json = click.option("--json", "as_json", is_flag=True, help="Print what was done as one JSON object.")
        stacktrace = click.option("--stacktrace", is_flag=True, help="Show Spark's whole account of a failure.")
        return click.command(name, context_settings={"show_default": True})(stacktrace(as_json(run)))

    return decorate


@contextmanager
def spark_session(name: str, options: SessionOptions, packages: tuple[str, ...] = ()) -> Iterator[SparkSession]:
    """Run Spark for the block, as the user's options say."""
    out = console()
    spark = start_session(
        f"kafkacompat {name}",
        master=options.master,
        memory=options.driver_memory,
        packages=packages,
        configs=dict(options.conf),
        say=out.print,
    )
    try:
        yield spark
    finally:
        spark.stop()


@contextmanager
def _explained(stacktrace: bool) -> Iterator[None]:
    try:
        yield
    except (PipelineError, PySparkException, Py4JError, OSError) as problem:
        if stacktrace:
            raise
        sentence = str(problem) if isinstance(problem, PipelineError) else sentence_of(problem)
        click.echo(f"Error: {sentence}", err=True)
        sys.exit(EXIT_NOT_DONE)
    except KeyboardInterrupt:
        click.echo("Error: interrupted; run it again to go on", err=True)
        sys.exit(EXIT_NOT_DONE)
