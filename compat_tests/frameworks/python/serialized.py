"""Writes records by the three serializers of confluent-kafka: Avro of two versions in turn, Protobuf, JSON Schema.

The environment says BOOTSTRAP, REGISTRY (a URL), TOPIC (their topics are TOPIC-avro, -protobuf, -json) and COUNT (records of
each). Protobuf takes the second message of its file. Prints nothing.
"""

from __future__ import annotations

import json
import os
from typing import Any

from confluent_kafka import Producer
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

TOPIC, COUNT = os.environ["TOPIC"], int(os.environ["COUNT"])
FIRST = [{"name": "number", "type": "int"}]
SECOND = [{"name": "number", "type": "long"}, {"name": "word", "type": "string", "default": "none"}]
JSON_SCHEMA = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "title": "Event",
    "type": "object",
    "properties": {"number": {"type": "integer"}, "word": {"type": "string"}},
    "required": ["number"],
}


def make_serializer(registry: Any, fields: list[dict[str, str]]) -> Any:
    """Return a serializer of a record with these fields."""
    return AvroSerializer(registry, json.dumps({"type": "record", "name": "Event", "fields": fields}))


def make_message_class() -> Any:
    """Return the class of shop.Event, the second message of a file made here."""
    numbers, words = FieldDescriptorProto.TYPE_INT64, FieldDescriptorProto.TYPE_STRING
    fields = [FieldDescriptorProto(name="number", number=1, type=numbers, label=1)]
    fields.append(FieldDescriptorProto(name="word", number=2, type=words, label=1))
    other, event = DescriptorProto(name="Other"), DescriptorProto(name="Event", field=fields)
    pool = DescriptorPool()
    pool.Add(FileDescriptorProto(name="event.proto", package="shop", syntax="proto3", message_type=[other, event]))
    return GetMessageClass(pool.FindMessageTypeByName("shop.Event"))


def main() -> None:
    """Write all records."""
    registry = SchemaRegistryClient({"url": os.environ["REGISTRY"]})
    producer = Producer({"bootstrap.servers": os.environ["BOOTSTRAP"]})

    def write(topic: str, serialize: Any, value: Any) -> None:
        context = SerializationContext(topic, MessageField.VALUE)
        producer.produce(topic, value=serialize(value, context))

    old, new = make_serializer(registry, FIRST), make_serializer(registry, SECOND)
    for number in range(COUNT):
        if number % 2:
            write(f"{TOPIC}-avro", new, {"number": number, "word": f"word {number}"})
        else:
            write(f"{TOPIC}-avro", old, {"number": number})
    event = make_message_class()
    protobuf = ProtobufSerializer(event, registry, {"use.deprecated.format": False})
    documents = JSONSerializer(json.dumps(JSON_SCHEMA), registry)
    for number in range(COUNT):
        write(f"{TOPIC}-protobuf", protobuf, event(number=number, word=f"word {number}"))
        write(f"{TOPIC}-json", documents, {"number": number, "word": f"word {number}"})
    assert producer.flush(60) == 0


if __name__ == "__main__":
    main()
