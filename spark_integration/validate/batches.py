"""Micro-batches of `validate`, which may be killed at any moment and repeated."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pyspark import Broadcast
from pyspark.sql import DataFrame

from spark_integration.errors import PipelineError
from spark_integration.topics.cluster import Cluster
from spark_integration.topics.offsets import Offsets
from spark_integration.validate.decoding import Known, decode_records
from spark_integration.validate.formats import DecodingPlan
from spark_integration.validate.outputs import (
    COLUMNS,
    dead_letter_records,
    good_records,
    read_output_ends,
    write_files,
    write_topic,
)
from spark_integration.validate.settings import ValidateOutputs
from spark_integration.validate.state import BegunBatch, ValidateState
from spark_integration.validate.tally import BatchCounts, sum_tallies


class ValidateBatchWriter:
    """Writes micro-batches (a foreachBatch function); *total* is the sum of their counts.

    Before a batch writes, it records how it reads values and where its topics end. A repeated batch reads in the same
    way, so every record goes where it went before. It replaces its files, and adds to the topics only the records that
    they lack.
    """

    def __init__(
        self,
        plan: DecodingPlan,
        known: Broadcast[Known],
        outputs: ValidateOutputs,
        cluster: Cluster,
        target: Mapping[str, str],
        state: ValidateState,
        fail_on_drift: bool,
        say: Callable[[str], None],
    ) -> None:
        self._plan = plan
        self._known = known
        self._outputs = outputs
        self._cluster = cluster
        self._target = target
        self._state = state
        self._fail_on_drift = fail_on_drift
        self._say = say
        self.total = BatchCounts()
        self.failure: PipelineError | None = None

    def __call__(self, frame: DataFrame, number: int) -> None:
        try:
            self._run(frame, number)
        except PipelineError as problem:
            self.failure = problem
            raise

    def _run(self, frame: DataFrame, number: int) -> None:
        before = self._state.read_begun(number, self._plan.registry)
        plan = before.plan if before else self._plan
        # Decoding twice, once for each output, could put a record into both: a schema may be registered meanwhile.
        refused = before.refused if before else None
        decoded = decode_records(frame.select(*COLUMNS), plan, self._known, refused).localCheckpoint()
        try:
            counts = sum_tallies(decoded)
            for difference in self.total.add(counts):
                self._say(f"the records differ from the schema: {difference}")
            if before is None:
                self._refuse_drift(counts)
            now = read_output_ends(self._cluster, self._outputs)
            if before is None:
                self._state.begin(number, BegunBatch(plan, now, counts.refused))
            self._write(decoded, counts, number, before.ends if before else None, now)
        finally:
            _release_frame(decoded)

    def _write(
        self, decoded: DataFrame, counts: BatchCounts, number: int, before: Offsets | None, now: Offsets
    ) -> None:
        query_id = self._state.query_id
        good, dead = decoded.where("reason is null"), decoded.where("reason is not null")
        if counts.good:
            self._write_files(good, query_id, number, before)
            if self._outputs.topic is not None:
                records = good_records(good, query_id)
                write_topic(records, self._outputs.topic, self._target, before, now, query_id)
        if counts.dead:
            topic = self._outputs.dead_letter_topic
            write_topic(dead_letter_records(dead, query_id), topic, self._target, before, now, query_id)

    def _write_files(self, good: DataFrame, query_id: str, number: int, before: Offsets | None) -> None:
        try:
            write_files(good, self._outputs, query_id, number)
        except Exception:
            if before is None:
                self._state.forget(number)
            raise

    def _refuse_drift(self, counts: BatchCounts) -> None:
        if self._fail_on_drift and counts.drift:
            differences = ", ".join(f"{difference} ({number})" for difference, number in counts.drift.most_common(10))
            raise PipelineError(
                f"the records differ from the schema: {differences}: change the schema, or give --on-drift warn"
            )


def _release_frame(decoded: DataFrame) -> None:
    """Release the frame of a batch; Spark itself does so only when the JVM collects garbage."""
    java: Any = decoded._jdf
    java.queryExecution().logical().rdd().unpersist(False)
