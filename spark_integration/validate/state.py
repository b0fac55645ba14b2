"""The state of `validate` beside its query's checkpoint, so that a repeated batch has the same result."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace

from pyspark.sql import SparkSession

from spark_integration.state.files import HadoopFiles
from spark_integration.topics.offsets import Offsets, format_offsets, parse_offsets
from spark_integration.validate.formats import DecodingPlan
from spark_integration.validate.registry import RegistryOptions, Schema

FOLDER = "kafkacompat-validate"
INFERRED = "inferred-schema.json"
BATCHES = "batches"


@dataclass(frozen=True)
class BegunBatch:
    """A batch that began to write: how it read its records, and the ends of its topics at that time.

    *refused* are the ids of schemas that it could not use, with the reason; they may be registered meanwhile.
    """

    plan: DecodingPlan
    ends: Offsets
    refused: Mapping[int, str] = field(default_factory=dict)

    def as_json(self) -> str:
        """Return the batch as JSON, without the registry's address and password."""
        plan = asdict(replace(self.plan, registry=None))
        return json.dumps({"plan": plan, "ends": format_offsets(self.ends), "refused": dict(self.refused)})


def parse_begun_batch(text: str, registry: RegistryOptions | None) -> BegunBatch:
    """Parse the JSON of `BegunBatch.as_json`."""
    fields = json.loads(text)
    plan = fields["plan"]
    references = tuple((name, referred) for name, referred in plan["reader"]["references"])
    reader = Schema(**{**plan["reader"], "references": references})
    refused = {int(number): reason for number, reason in fields.get("refused", {}).items()}
    return BegunBatch(
        DecodingPlan(**{**plan, "reader": reader, "registry": registry}), parse_offsets(fields["ends"]), refused
    )


class ValidateState:
    """The files in ``kafkacompat-validate`` below the checkpoint."""

    def __init__(self, spark: SparkSession, checkpoint: str) -> None:
        self._checkpoint = HadoopFiles(spark, checkpoint)
        self._files = HadoopFiles(spark, f"{checkpoint.rstrip('/')}/{FOLDER}")

    @property
    def query_id(self) -> str:
        """The id of the query, which its checkpoint keeps; it exists once the query runs."""
        return str(json.loads(self._checkpoint.read("metadata"))["id"])

    def read_inferred(self) -> str | None:
        """Return the type that the first run inferred, as the JSON of Spark's DataType."""
        return self._files.read(INFERRED) if self._files.exists(INFERRED) else None

    def keep_inferred_schema(self, text: str) -> str:
        """Keep an inferred type for later runs; return the file that holds it."""
        self._files.write_new(INFERRED, text)
        return self._files.path(INFERRED)

    def read_begun(self, number: int, registry: RegistryOptions | None) -> BegunBatch | None:
        """Return how that batch began; None if it never did."""
        name = f"{BATCHES}/{number}"
        return parse_begun_batch(self._files.read(name), registry) if self._files.exists(name) else None

    def begin(self, number: int, begun: BegunBatch) -> None:
        """Record that the batch begins to write; earlier batches are over."""
        self._files.write_new(f"{BATCHES}/{number}", begun.as_json())
        for begun_number in self._files.numbers(BATCHES):
            if begun_number < number:
                self._files.remove(f"{BATCHES}/{begun_number}")

    def forget(self, number: int) -> None:
        """Record that the batch has written nothing, so that it may be read in another way."""
        self._files.remove(f"{BATCHES}/{number}")
