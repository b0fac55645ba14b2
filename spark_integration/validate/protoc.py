"""Descriptors of Protobuf schemas, compiled by the protoc that comes with grpcio-tools (decision 009)."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from functools import lru_cache
from pathlib import Path, PurePosixPath

from google.protobuf.descriptor import Descriptor, FileDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError

from spark_integration.errors import PipelineError
from spark_integration.validate.registry import Schema

NAME = "schema.proto"
SECONDS = 60


@lru_cache(maxsize=1024)
def compile_schema(schema: Schema) -> FileDescriptor:
    """Compile a schema, once in a process; raises PipelineError."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in [*schema.references, (NAME, schema.text)]:
            _write_file(Path(folder), name, text)
        return _load_file(_run_protoc(Path(folder), NAME))


def compile_file(path: Path) -> bytes:
    """Compile a .proto file, which may import others beside it, to a FileDescriptorSet; raises PipelineError."""
    return _run_protoc(path.resolve().parent, path.name)


@lru_cache(maxsize=1024)
def parse_descriptors(descriptors: bytes) -> FileDescriptor:
    """Return the last file of a FileDescriptorSet (what ``protoc --descriptor_set_out`` writes); raises PipelineError."""
    return _load_file(descriptors)


def top_level_messages(file: FileDescriptor) -> list[Descriptor]:
    """Return the messages of a file, without those within others."""
    return list(file.message_types_by_name.values())


def messages_at(file: FileDescriptor, indexes: tuple[int, ...]) -> list[Descriptor]:
    """Return the messages that this path of indexes may mean; none if the file has none there.

    Confluent's Java serializer counts the messages that the .proto declares. Those for Python and Go also count the
    entries of maps.
    """
    messages = (_follow_indexes(top_level_messages(file), indexes, entries) for entries in (False, True))
    return [message for message in messages if message is not None]


def _follow_indexes(among: list[Descriptor], indexes: tuple[int, ...], entries: bool) -> Descriptor | None:
    message = None
    for index in indexes:
        if not 0 <= index < len(among):
            return None
        message = among[index]
        among = [nested for nested in message.nested_types if entries or not nested.GetOptions().map_entry]
    return message


def _write_file(folder: Path, name: str, text: str) -> None:
    relative = PurePosixPath(name)
    if relative.is_absolute() or ".." in relative.parts:
        raise PipelineError(f"a Protobuf schema refers to {name!r}, which is no name of a file: correct it")
    path = folder / relative
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def _run_protoc(folder: Path, name: str) -> bytes:
    """Compile a file below *folder*, in a process of its own, since protoc reports errors only on standard error."""
    arguments = ["-I", str(folder), "--include_imports", "--descriptor_set_out=/dev/stdout", name]
    command = [sys.executable, "-m", "grpc_tools.protoc", *arguments]
    done = subprocess.run(command, capture_output=True, timeout=SECONDS, check=False)
    if done.returncode:
        reason = (done.stderr.decode(errors="replace").strip().splitlines() or ["no reason"])[0]
        raise PipelineError(f"a Protobuf schema cannot be compiled ({reason}): correct it")
    return done.stdout


def _load_file(descriptors: bytes) -> FileDescriptor:
    files, pool = FileDescriptorSet(), DescriptorPool()
    try:
        files.ParseFromString(descriptors)
        for file in files.file:
            pool.Add(file)
        return pool.FindFileByName(files.file[-1].name)
    except (DecodeError, TypeError, KeyError, IndexError) as problem:
        raise PipelineError(
            f"Protobuf descriptors cannot be read ({problem}): make them by protoc --include_imports --descriptor_set_out"
        ) from problem
