"""Values of Protobuf, as JSON in the mapping of the protobuf package, with the names of the schema's fields."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kafkacompat.cli.remote.errors import RemoteError, explain_missing_library
from spark_integration.validate.framing import split_message_indexes

if TYPE_CHECKING:
    from kafkacompat.cli.remote.records.avro_values import ReadValue
    from spark_integration.validate.registry import Schema


def make_protobuf_reader(schema: Schema) -> ReadValue:
    """Return the reader of a schema; raises PipelineError if protoc rejects the schema, RemoteError without protobuf."""
    try:
        import grpc_tools  # type: ignore[import-untyped]  # noqa: F401  # its protoc compiles schemas
        from google.protobuf import json_format, message_factory

        from spark_integration.validate.protoc import compile_schema, messages_at
    except ImportError:
        raise RemoteError(explain_missing_library("protobuf or grpcio-tools", "schemas")) from None

    file = compile_schema(schema)
    classes: dict[tuple[int, ...], Any] = {}

    def read_value(payload: bytes) -> Any:
        indexes, encoded = split_message_indexes(payload)
        if indexes not in classes:
            messages = messages_at(file, indexes)
            # The set of messages of a schema is small, and an index beyond it raises.
            classes[indexes] = message_factory.GetMessageClass(messages[0])
        message = classes[indexes].FromString(encoded)
        return json_format.MessageToDict(
            message,
            preserving_proto_field_name=True,
            always_print_fields_with_no_presence=True,
            descriptor_pool=file.pool,
        )

    return read_value
