"""How `validate` reads values, and where it writes records. Imports no pyspark."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from spark_integration.errors import PipelineError
from spark_integration.validate.registry import RegistryOptions

# Formats of values, and the registries' names for them.
KINDS = {"json": "JSON", "avro": "AVRO", "protobuf": "PROTOBUF"}
# Further kinds of schemas: one of Spark's own, as the JSON of a DataType; a FileDescriptorSet, as Latin-1.
SPARK, DESCRIPTORS = "SPARK", "DESCRIPTORS"
# Wire formats: values begin with the id of a schema, or do not.
CONFLUENT, PLAIN = "confluent", "plain"
SAMPLE = 1000
TABLE_FORMATS = ("parquet", "delta")


@dataclass(frozen=True)
class SchemaOptions:
    """The format of the values, and where their schema is.

    *schema* is a file. Without it the newest version of *subject* is taken from *registry*; for JSON without a registry
    it is inferred from *infer* records. *subject* is TOPIC-value by default. *wire_format* is confluent (values begin
    with a header that has the id of a schema) or plain; by default confluent with a registry, and plain without.
    """

    value_format: str = "json"
    schema: Path | None = None
    message: str | None = None
    registry: RegistryOptions | None = None
    subject: str | None = None
    wire_format: str | None = None
    infer: int = SAMPLE


@dataclass(frozen=True)
class ValidateOutputs:
    """*path* (of *format*), *topic* or both take good records; *dead_letter_topic* takes all others."""

    dead_letter_topic: str
    path: str | None = None
    format: str = "parquet"
    topic: str | None = None

    @property
    def topics(self) -> list[str]:
        """The topics that are written to."""
        return [name for name in (self.topic, self.dead_letter_topic) if name is not None]

    def check(self) -> None:
        """Raise PipelineError unless good records have an output, and another one than dead letters."""
        if self.path is None and self.topic is None:
            raise PipelineError("good records would go nowhere: give --path, --topic or both")
        if self.topic == self.dead_letter_topic:
            raise PipelineError(f"good records and dead letters would both go to {self.topic}: give two topics")
