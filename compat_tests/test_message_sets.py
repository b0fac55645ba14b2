"""Our message sets of formats 0 and 1, judged by the classes of Apache Kafka 3.9.1, the last to convert."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace

import pytest

from compat_tests.oracle import KAFKA_3, Oracle, OracleError
from kafkacompat.wire.conversion import SizeLimits, TargetCodec, down_convert, up_convert
from kafkacompat.wire.record_batch import (
    LOG_APPEND_TIME,
    NewRecord,
    assemble_batch,
    build_batch,
    read_header,
    read_records,
)

NOW_MS = 1_700_000_000_000
PLAIN, GZIP, SNAPPY, LZ4, ZSTD = range(5)
OLD_CODECS = (PLAIN, GZIP, SNAPPY, LZ4)
NO_LIMIT = 1 << 30
SEED = 20


@pytest.fixture(scope="module")
def kafka() -> Iterator[Oracle]:
    with Oracle(replace(KAFKA_3, programs=("OldRecords", "Oracle"))) as running:
        yield running


def make_records(count: int, seed: int = SEED) -> list[NewRecord]:
    """Records of all shapes: null and empty keys and values, headers, sizes around those where numbers get longer."""
    rng = random.Random(seed)

    def blob() -> bytes | None:
        return rng.choice((None, b"", rng.randbytes(rng.randrange(300)), b"x" * rng.randrange(20_000)))

    def headers() -> list[tuple[str, bytes | None]]:
        return [("name", blob()) for _ in range(rng.randrange(3))]

    return [(NOW_MS + rng.randrange(-100_000, 100_000), blob(), blob(), headers()) for _ in range(count)]


def make_log(codec: int) -> bytes:
    """Batches as they follow each other in a log, with a control batch and a hole between them."""
    first = build_batch(make_records(70), base_offset=100, codec=codec)
    control = build_batch([(NOW_MS, bytes(4), bytes(6), [])], base_offset=170, control=True, transactional=True)
    return first + control + build_batch(make_records(5, seed=1), base_offset=5_000_000_000, codec=codec)


def stamp_batch(batch: bytes) -> bytes:
    """The batch with the broker's time instead of the records' own."""
    header = read_header(batch)
    changed = header._replace(attributes=header.attributes | LOG_APPEND_TIME, max_timestamp=NOW_MS + 777)
    return assemble_batch(changed, batch[61:])


def read_by_kafka(kafka: Oracle, data: bytes) -> list[dict[str, object]]:
    entries: list[dict[str, object]] = kafka.ask("read", hex=data.hex())["entries"]
    return entries


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", OLD_CODECS)
@pytest.mark.parametrize("first_offset", [100, 133, 170, 171])
def test_batches_become_the_message_sets_that_kafka_makes_of_them(
    kafka: Oracle, magic: int, codec: int, first_offset: int
) -> None:
    for data in (make_log(codec), stamp_batch(make_log(codec)[: read_header(make_log(codec)).size_bytes])):
        expected = bytes.fromhex(kafka.ask("down", hex=data.hex(), magic=magic, first_offset=first_offset)["hex"])
        ours = down_convert(data, magic, first_offset, NO_LIMIT, NO_LIMIT, NO_LIMIT).data
        if codec == PLAIN:
            assert ours == expected
        # Kafka also sends a wrapper that ends before the offset; a client that gets nothing else repeats its request for ever.
        behind = [entry for entry in read_by_kafka(kafka, expected) if int(str(entry["offset"])) >= first_offset]
        assert read_by_kafka(kafka, ours) == behind


def test_zstd_is_refused_as_kafka_refuses_it(kafka: Oracle) -> None:
    with pytest.raises(OracleError, match="UnsupportedCompressionType"):
        kafka.ask("down", hex=make_log(ZSTD).hex(), magic=1, first_offset=100)


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", OLD_CODECS)
def test_kafkas_message_sets_become_batches(kafka: Oracle, magic: int, codec: int) -> None:
    given = make_records(70)
    asked = [
        [timestamp, *(None if content is None else content.hex() for content in pair)] for timestamp, *pair, _ in given
    ]
    built = bytes.fromhex(kafka.ask("build", magic=magic, codec=codec, records=asked)["hex"])
    batch = up_convert(built, TargetCodec(None, {}), SizeLimits(NO_LIMIT, NO_LIMIT))
    assert read_header(batch).codec == codec
    converted = [
        (record.offset, record.timestamp, record.key, record.value, record.headers) for record in read_records(batch)
    ]
    times = [timestamp if magic else -1 for timestamp, *_ in given]
    assert converted == [(index, times[index], key, value, []) for index, (_, key, value, _) in enumerate(given)]
