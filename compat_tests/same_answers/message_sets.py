"""Scripts in the versions of Produce and Fetch that know message sets; Kafka 3.9.1 converts them as ours does."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any
from zlib import crc32

from compat_tests import batches
from compat_tests.batches import RECENT_MS
from compat_tests.raw_client import produce_request
from compat_tests.same_answers.records import BATCH, fetch_of
from compat_tests.same_answers.transcript import Transcript
from kafkacompat.wire.apis.fetch import FetchResponse
from kafkacompat.wire.apis.produce import ProduceResponse
from kafkacompat.wire.message_set import make_entry_writer, read_message_set, unwrap_messages, wrap_messages
from kafkacompat.wire.record_batch import read_header, read_records
from kafkacompat.wire.record_batch import split_batches as whole_batches

if TYPE_CHECKING:
    from kafkacompat.wire.message_set import LegacyMessage

V0, V1 = make_entry_writer(0, 0), make_entry_writer(1, 0)
LOG_APPEND_TIME = 8
ONE = V0(0, -1, b"k", b"v")
# In format 0 the bit means nothing.
ODD = ONE[:12] + struct.pack(">I", crc32(ONE[16:17] + b"\x08" + ONE[18:])) + ONE[16:17] + b"\x08" + ONE[18:]
TWO = V1(0, RECENT_MS, b"k", b"v") + V1(1, RECENT_MS + 1, None, None)


def make_wrapper(
    magic: int, count: int = 3, offset: int | None = None, codec: int = batches.GZIP, first: int = 0
) -> bytes:
    write = make_entry_writer(magic, 0)
    inner = b"".join(write(first + number, RECENT_MS + number, b"k", b"v") for number in range(count))
    return wrap_messages(magic, codec, count - 1 if offset is None else offset, RECENT_MS + count - 1, inner)


GOOD = {
    "one": ONE,
    "two": TWO,
    **{f"wrapper {magic} {codec}": make_wrapper(magic, codec=codec) for magic in (0, 1) for codec in (1, 2, 3)},
    "librdkafka's wrapper": make_wrapper(1, offset=0),
    "odd offsets inside": make_wrapper(1, offset=40, first=7),
    "time of the log in format 0": ODD,
    "time of the log": make_entry_writer(1, LOG_APPEND_TIME)(0, RECENT_MS, b"k", b"v"),
    "wrapper with the time of the log": wrap_messages(1, LOG_APPEND_TIME | 1, 1, RECENT_MS, TWO),
    "batch": BATCH,
    "batch with zstd": batches.build([b"a", b"b"], codec=batches.ZSTD),
    "empty": b"",
}
BAD = {
    "bad CRC": ONE[:-1] + b"x",
    "size 3": struct.pack(">qi", 0, 3) + b"abc",
    "negative size": struct.pack(">qi", 0, -1) + bytes(20),
    "magic 3": ONE[:16] + b"\x03" + ONE[17:],
    "two formats": ONE + TWO,
    "two batches": BATCH + BATCH,
    "wrapper and more": make_wrapper(0) + ONE,
    "more and wrapper": ONE + make_wrapper(0),
    "wrapper in wrapper": wrap_messages(1, 1, 0, RECENT_MS, make_wrapper(1)),
    "wrapper of another format": wrap_messages(1, 1, 0, RECENT_MS, ONE),
    "bad CRC inside": wrap_messages(0, 1, 0, -1, ONE[:-1] + b"x"),
    "nothing inside": wrap_messages(1, 1, 0, RECENT_MS, b""),
    "no value": make_entry_writer(1, 1)(0, RECENT_MS, None, None),
    "offset below that inside": make_wrapper(1, offset=1),
    "zstd": make_wrapper(1, codec=batches.ZSTD),
    "time of the log without time": make_entry_writer(1, LOG_APPEND_TIME)(0, -1, b"k", b"v"),
    "codec 5": make_entry_writer(1, 5)(0, RECENT_MS, None, b"abc"),
    "no gzip": make_entry_writer(1, 1)(0, RECENT_MS, None, b"abc"),
    "time before 1970": V1(0, -5, b"k", b"v"),
    "cut": ONE + ONE[:-3],
    "cut in the wrapper": wrap_messages(0, 1, 0, -1, ONE + ONE[:-3]),
}
TOPICS: dict[str, dict[str, str]] = {
    "compacted": {"cleanup_policy": "compact"},
    "append-time": {"message_timestamp_type": "LogAppendTime"},
    "gzip": {"compression_type": "gzip"},
    "uncompressed": {"compression_type": "uncompressed"},
    "small": {"max_message_bytes": "100"},
}


def produce_message_sets(script: Transcript, name: str) -> None:
    script.create_topic(name)
    for version in range(3):
        for label, data in GOOD.items():
            script.ask(label, produce_request(name, {0: data}), ProduceResponse, version)
        script.ask("unknown topic", produce_request(name + "-absent", {0: ONE}), ProduceResponse, version)
        script.ask("acks 2", produce_request(name, {0: ONE}, acks=2), ProduceResponse, version)
    script.note("stored", read_stored(script, name))
    for label, data in BAD.items():
        script.ask(label, produce_request(name, {0: data}), ProduceResponse, 2)
    for kind, configs in TOPICS.items():
        topic = f"{name}-{kind}"
        script.create_topic(topic, 1, **configs)
        for label in ("one", "two", "wrapper 0 2", "time of the log"):
            script.ask(f"{kind}: {label}", produce_request(topic, {0: GOOD[label]}), ProduceResponse, 2)
        script.ask(f"{kind}: many", produce_request(topic, {0: ONE * 20}), ProduceResponse, 2)
        script.note(f"{kind}: stored", read_stored(script, topic, timed=kind != "append-time"))


def read_stored(script: Transcript, name: str, *, timed: bool = True) -> list[Any]:
    """Return the log's batches with their records."""
    answer = script.client.call(fetch_of(name), FetchResponse, 11)
    data = answer.responses[0].partitions[0].records
    assert isinstance(data, (bytes, memoryview))
    stored: list[Any] = []
    for batch in whole_batches(data):
        header = read_header(batch)
        times = [header.base_timestamp, header.max_timestamp] if timed else []
        records = [
            [record.offset, record.timestamp if timed else 0, record.key, record.value]
            for record in read_records(batch)
        ]
        stored.append([header.attributes, header.producer_id, header.base_sequence, *times, records])
    return stored


def fetch_message_sets(script: Transcript, name: str) -> None:
    script.create_topic(name)
    for codec in range(4):
        batch = batches.build([b"a", None, b"c"], codec=codec, headers=[("h", b"x")])
        script.ask(f"fill {codec}", produce_request(name, {0: batch}), ProduceResponse, 9)
    script.create_topic(name + "-zstd")
    for codec in (0, batches.ZSTD):
        batch = batches.build([b"a"], codec=codec)
        script.ask(f"fill zstd {codec}", produce_request(name + "-zstd", {0: batch}), ProduceResponse, 9)
    for version in range(4):
        for offset in (0, 1, 3, 4, 8, 11):
            ask_messages(script, f"offset {offset}", version, name, offset)
        for offset in (0, 1):
            ask_messages(script, f"zstd {offset}", version, name + "-zstd", offset)
        ask_messages(script, "at the end", version, name, 12)
        ask_messages(script, "beyond the end", version, name, 13)
        ask_messages(script, "before the start", version, name, -5)
        ask_messages(script, "unknown topic", version, name + "-absent", 0)
        ask_messages(script, "unknown partition", version, name, 0, partition=5)
        ask_messages(script, "one byte", version, name, 0, partition_max_bytes=1)
        ask_messages(script, "200 bytes", version, name, 0, partition_max_bytes=200)


def ask_messages(script: Transcript, label: str, version: int, name: str, offset: int, **more: int) -> None:
    """Note the first message alone: the brokers count the limit differently, and Kafka may cut off the last message."""
    answer = script.ask(label, fetch_of(name, offset, bytes(16), **more), FetchResponse, version)
    data = answer.responses[0].partitions[0].records if answer else None
    assert data is None or isinstance(data, (bytes, memoryview))
    messages = [list_fields(message) for message in read_message_set(whole_entries(bytes(data or b"")))]
    script.note(f"{label} v{version}: first message", messages[:1])


def list_fields(message: LegacyMessage) -> list[Any]:
    inside = (
        [list(inner_message) for inner_message in unwrap_messages(message, 1 << 20)] if message.codec else message.value
    )
    return [*message[:5], inside]


def whole_entries(data: bytes) -> bytes:
    """The data up to an entry that is cut off."""
    position = 0
    while len(data) - position >= 12:
        end = position + 12 + int.from_bytes(data[position + 8 : position + 12], "big")
        if end > len(data):
            break
        position = end
    return data[:position]


SCRIPTS = (produce_message_sets, fetch_message_sets)
