"""A streaming query from its start to its end, and the observers of its batches."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.streaming import DataStreamWriter, StreamingQuery

from spark_integration.errors import PipelineError
from spark_integration.queries.bars import show_query_bar
from spark_integration.queries.console import say
from spark_integration.queries.listener import KafkaListener, Observer
from spark_integration.queries.observers import Committer, JsonLines, PrometheusText, ReadTally
from spark_integration.queries.settings import StreamOptions, trigger_arguments
from spark_integration.state.checkpoint import read_finished_offsets
from spark_integration.topics.cluster import Cluster

POLL_S = 0.5
# Spark's words if a batch lacks partitions that AvailableNow found at the query's start.
LACKS_PARTITIONS = "should provide the same topic partitions in pre-fetched offset"


def run_query(
    spark: SparkSession,
    writer: DataStreamWriter,
    options: StreamOptions,
    *,
    name: str,
    cluster: Cluster | None = None,
    observers: Sequence[Observer] = (),
) -> ReadTally:
    """Start the query that *writer* describes, and wait until it has ended; return the numbers of rows and batches.

    SIGINT or SIGTERM ends a query that runs on, between two batches if Spark lets it. *cluster* is the one that is
    read, and gets the offsets of `commit_group`. Raises the query's failure, and PipelineError.
    """
    tally = ReadTally()
    committer = _make_committer(cluster, options)
    if committer is not None:
        committer.check()
        # An earlier run may have been killed between a batch and its commit, and this run may have nothing to read.
        committer.commit(read_finished_offsets(spark, options.checkpoint_location) or {})
    files = [made for made in (_make_json_lines(options), _make_prometheus(options), committer) if made is not None]
    query_name = options.query_name or name
    configured = writer.queryName(query_name).option("checkpointLocation", options.checkpoint_location)
    with ExitStack() as stack:
        shown = stack.enter_context(show_query_bar(name))
        listener = KafkaListener([tally, shown, *files, *observers], query_name, say)
        stack.enter_context(_added_listener(spark, listener))
        stopped = stack.enter_context(catch_stop_signals())
        _run_until_planned_end(configured, trigger_arguments(options.trigger), listener, stopped)
    if listener.failure is not None:
        raise PipelineError(f"the query succeeded, but reporting it failed: {listener.failure}") from listener.failure
    return tally


def _run_until_planned_end(
    writer: DataStreamWriter, trigger: dict[str, Any], listener: KafkaListener, stopped: threading.Event
) -> None:
    try:
        _run_once(writer.trigger(**trigger), listener, stopped)
    except StreamingQueryException as failure:
        if LACKS_PARTITIONS not in str(failure):
            raise
        # A killed run left a batch that was planned before partitions were added, and AvailableNow requires them in it.
        # It would fail for ever, so that batch runs by itself first.
        _run_once(writer.trigger(once=True), listener, stopped)
        _run_once(writer.trigger(**trigger), listener, stopped)


def _run_once(writer: DataStreamWriter, listener: KafkaListener, stopped: threading.Event) -> None:
    query = writer.start()
    try:
        _wait_for_end(query, stopped)
    finally:
        query.stop()
        listener.wait_until_ended(str(query.runId))


def _wait_for_end(query: StreamingQuery, stopped: threading.Event) -> None:
    while not stopped.is_set():
        if query.awaitTermination(POLL_S):
            return


def _make_committer(cluster: Cluster | None, options: StreamOptions) -> Committer | None:
    if options.commit_group is None or cluster is None:
        return None
    return Committer(cluster, options.commit_group)


def _make_json_lines(options: StreamOptions) -> Observer | None:
    return JsonLines(options.progress_json) if options.progress_json else None


def _make_prometheus(options: StreamOptions) -> Observer | None:
    return PrometheusText(options.prometheus) if options.prometheus else None


@contextmanager
def _added_listener(spark: SparkSession, listener: KafkaListener) -> Iterator[None]:
    spark.streams.addListener(listener)
    try:
        yield
    finally:
        spark.streams.removeListener(listener)


@contextmanager
def catch_stop_signals() -> Iterator[threading.Event]:
    """Set the event upon SIGINT and SIGTERM instead of ending the process; only the main thread receives signals."""
    stopped = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield stopped
        return
    handler: Callable[..., None] = lambda *_: stopped.set()  # noqa: E731
    before = {number: signal.signal(number, handler) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stopped
    finally:
        for number, previous in before.items():
            signal.signal(number, previous)
