"""The ledger of a redrive: which dead letters were written back."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame, SparkSession

from spark_integration.errors import PipelineError
from spark_integration.redrive.letters import LETTER_TYPE, find_redriven
from spark_integration.state.files import HadoopFiles
from spark_integration.topics.cluster import TopicDescription
from spark_integration.topics.offsets import Offsets, format_offsets, parse_offsets


class RedriveLedger:
    """Which dead letters were redriven: ``done/N`` (Parquet) lists those of run N.

    ``begun/N`` says that run N has begun. The letters of a killed run are found in the topics, from the offsets in
    ``begun/N`` on. ``topics/NAME`` holds the id of the dead letters' topic, since another topic of that name has other
    letters at the same offsets.
    """

    def __init__(self, spark: SparkSession, path: str, letters: TopicDescription) -> None:
        self._spark = spark
        self._files = HadoopFiles(spark, path)
        self._letters = letters
        self._topic_file = f"topics/{letters.name}"

    def check(self, bootstrap: str) -> None:
        """Raise PipelineError if the ledger is of another topic of that name."""
        if self._files.exists(self._topic_file) and self._files.read(self._topic_file) != self._letters.topic_id:
            raise PipelineError(
                f"the ledger {self._files.uri} is of another topic {self._letters.name} "
                f"than the one on {bootstrap}, which "
                "was recreated or belongs to another cluster: give another --ledger"
            )

    def read_redriven(self, target: Mapping[str, str]) -> DataFrame:
        """Return the places (`LETTER`) of the dead letters that were written back."""
        done = self._spark.createDataFrame([], LETTER_TYPE)
        for number in self._files.numbers("done"):
            done = done.unionByName(self._spark.read.schema(LETTER_TYPE).parquet(self._files.path(f"done/{number}")))
        if begin := self._find_unfinished():
            done = done.unionByName(find_redriven(self._spark, target, begin))
        return done.distinct()

    def _find_unfinished(self) -> Offsets:
        """Return the end of each partition at the time when the first unfinished run began."""
        begin: Offsets = {}
        for number in self._files.numbers("begun"):
            for partition, offset in parse_offsets(self._files.read(f"begun/{number}")).items():
                begin[partition] = min(offset, begin.get(partition, offset))
        return begin

    def begin(self, ends: Offsets) -> None:
        """Record that a run begins, and the ends of the topics that it is going to write to."""
        if not self._files.exists(self._topic_file):
            self._files.write_new(self._topic_file, self._letters.topic_id)
        numbers = self._files.numbers("begun")
        self._files.write_new(f"begun/{numbers[-1] + 1 if numbers else 0}", format_offsets(ends))

    def finish(self, done: DataFrame) -> None:
        """Record all letters that were ever redriven, in place of everything that the ledger held."""
        before = self._files.numbers("done")
        number = before[-1] + 1 if before else 0
        done.write.mode("overwrite").parquet(self._files.path(f"done/{number}"))
        begun = [f"begun/{run}" for run in self._files.numbers("begun")]
        for name in [*begun, *(f"done/{run}" for run in before)]:
            self._files.remove(name)
