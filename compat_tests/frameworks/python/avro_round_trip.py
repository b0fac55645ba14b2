"""Writes records of two versions of an Avro schema and reads them back by the newer one, with confluent-kafka.

The environment says BOOTSTRAP, REGISTRY (a URL), TOPIC and COUNT (records of each version). Prints one line of JSON.
"""

from __future__ import annotations

import json
import os
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

BOOTSTRAP, TOPIC, COUNT = os.environ["BOOTSTRAP"], os.environ["TOPIC"], int(os.environ["COUNT"])
FIRST = [{"name": "number", "type": "long"}]
SECOND = [*FIRST, {"name": "word", "type": "string", "default": "none"}]
CONTEXT = SerializationContext(TOPIC, MessageField.VALUE)


def make_schema(fields: list[dict[str, str]]) -> str:
    """Return the schema of a record with these fields."""
    return json.dumps({"type": "record", "name": "Event", "fields": fields})


def write_events(registry: Any, events: list[dict[str, Any]], fields: list[dict[str, str]]) -> None:
    """Register the schema and produce the events."""
    serialize = AvroSerializer(registry, make_schema(fields))
    producer = Producer({"bootstrap.servers": BOOTSTRAP})
    for event in events:
        producer.produce(TOPIC, value=serialize(event, CONTEXT))
    assert producer.flush(60) == 0


def read_values(count: int) -> list[bytes]:
    """Return the first values of the topic."""
    consumer = Consumer({"bootstrap.servers": BOOTSTRAP, "group.id": "reader"})
    consumer.assign([TopicPartition(TOPIC, 0, OFFSET_BEGINNING)])
    values: list[bytes] = []
    while len(values) < count:
        message = consumer.poll(30)
        assert message is not None
        assert message.error() is None, message.error()
        values.append(message.value())
    consumer.close()
    return values


def main() -> None:
    """Write, read, compare."""
    registry = SchemaRegistryClient({"url": os.environ["REGISTRY"]})
    write_events(registry, [{"number": number} for number in range(COUNT)], FIRST)
    write_events(registry, [{"number": number, "word": f"word {number}"} for number in range(COUNT, 2 * COUNT)], SECOND)
    values = read_values(2 * COUNT)
    deserialize = AvroDeserializer(registry, make_schema(SECOND))
    headers = [value[:5].hex() for value in values]
    print(json.dumps({"headers": headers, "events": [deserialize(value, CONTEXT) for value in values]}))


if __name__ == "__main__":
    main()
