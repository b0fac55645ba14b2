"""A query listener that reports how far a streaming query over Kafka is.

It can be added to a job of one's own::

    spark.streams.addListener(KafkaListener([JsonLines("progress.jsonl"), Committer(cluster, "my-group")]))
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol

from pyspark.sql.streaming.listener import StreamingQueryListener

from spark_integration.errors import explain_failure
from spark_integration.topics.offsets import Offsets, count_offsets_between, format_offsets, parse_offsets

KAFKA_SOURCE = "KafkaV2["


@dataclass(frozen=True)
class BatchProgress:
    """What one micro-batch has done; offsets are those of all its Kafka sources together."""

    query: str
    query_id: str
    run_id: str
    batch_id: int
    timestamp: str
    input_rows: int
    input_rows_per_second: float
    processed_rows_per_second: float
    durations_ms: Mapping[str, int]
    start_offsets: Offsets
    end_offsets: Offsets
    latest_offsets: Offsets

    @property
    def lag(self) -> int:
        """Offsets between the end of the batch and the end of the topics when the batch was planned."""
        return count_offsets_between(self.end_offsets, self.latest_offsets)

    def as_json(self) -> str:
        """Return the progress as one line of JSON, with offsets in Spark's form."""
        fields = {key: value for key, value in asdict(self).items() if not key.endswith("_offsets")}
        ends = {"start": self.start_offsets, "end": self.end_offsets, "latest": self.latest_offsets}
        offsets = {f"{name}_offsets": json.loads(format_offsets(value)) for name, value in ends.items()}
        return json.dumps({**fields, **offsets, "lag": self.lag})


class Observer(Protocol):
    """Receives the progress of each finished micro-batch, in the order of the batches."""

    def __call__(self, progress: BatchProgress, /) -> None: ...


def parse_progress(progress: Mapping[str, Any]) -> BatchProgress:
    """Parse Spark's own report of a batch (the JSON of StreamingQueryProgress)."""
    kafka = [source for source in progress["sources"] if source["description"].startswith(KAFKA_SOURCE)]
    ends = ("startOffset", "endOffset", "latestOffset")
    start, end, latest = (_merge_offsets(source.get(name) for source in kafka) for name in ends)
    return BatchProgress(
        query=progress.get("name") or "",
        query_id=progress["id"],
        run_id=progress["runId"],
        batch_id=progress["batchId"],
        timestamp=progress["timestamp"],
        input_rows=progress["numInputRows"],
        input_rows_per_second=progress.get("inputRowsPerSecond") or 0.0,
        processed_rows_per_second=progress.get("processedRowsPerSecond") or 0.0,
        durations_ms=progress.get("durationMs") or {},
        start_offsets=start,
        end_offsets=end,
        latest_offsets=latest,
    )


def _merge_offsets(offsets: Any) -> Offsets:
    merged: Offsets = {}
    for reported in offsets:
        # Older releases report offsets as text within the JSON, newer ones as JSON.
        if reported is not None:
            merged.update(parse_offsets(reported if isinstance(reported, str) else json.dumps(reported)))
    return merged


class KafkaListener(StreamingQueryListener):  # type: ignore[misc]
    """Passes each finished micro-batch to the observers.

    Spark calls a listener from one thread, after it has committed the batch to the checkpoint. So an observer never
    commits offsets ahead of those from which Spark would continue. A listener receives the batches of all queries of
    the session; with *query* it passes on those of the query of that name. If an observer fails, the query continues,
    and the observer is called again with the next batch; *say* receives a sentence about its first failure.
    """

    def __init__(
        self, observers: Sequence[Observer], query: str | None = None, say: Callable[[str], object] = lambda _: None
    ) -> None:
        self._observers = list(observers)
        self._query = query
        self._say = say
        self._failing: dict[int, Exception] = {}
        self._ended: dict[str, threading.Event] = {}

    @property
    def failure(self) -> Exception | None:
        """The failure of an observer at its last batch, if one failed."""
        return next(iter(self._failing.values()), None)

    def onQueryStarted(self, event: Any) -> None:
        """Do nothing: there is no batch yet."""

    def onQueryProgress(self, event: Any) -> None:
        """Pass the batch on."""
        batch = parse_progress(json.loads(event.progress.json))
        if self._query in (None, batch.query):
            for number, observer in enumerate(self._observers):
                self._notify(number, observer, batch)

    def _notify(self, number: int, observer: Observer, batch: BatchProgress) -> None:
        try:
            observer(batch)
            self._failing.pop(number, None)
        except Exception as problem:
            if number not in self._failing:
                self._say(
                    f"the query continues, but reporting batch {batch.batch_id} failed: {explain_failure(problem)}"
                )
            self._failing[number] = problem

    def onQueryIdle(self, event: Any) -> None:
        """Do nothing: the observers know where the query stands."""

    def onQueryTerminated(self, event: Any) -> None:
        """Note that the run has ended, and that all its batches were passed on."""
        self._find_ended_event(str(event.runId)).set()

    def wait_until_ended(self, run_id: str, timeout_s: float = 30.0) -> bool:
        """Wait until all batches of an ended run were passed on; return False if that took too long."""
        return self._find_ended_event(run_id).wait(timeout_s)

    def _find_ended_event(self, run_id: str) -> threading.Event:
        return self._ended.setdefault(run_id, threading.Event())
