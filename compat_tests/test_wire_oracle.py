"""Our encoder against the classes Apache Kafka generates for itself: byte for byte, both ways."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

from compat_tests.conformance.kafka import OTHERS, RELEASES, find_differences, list_cases
from compat_tests.oracle import KAFKA_3, Oracle, OracleError, kafka_json
from kafkacompat.wire.apis import API_NAMES, find_api
from kafkacompat.wire.compiler import encode_message
from kafkacompat.wire.errors import ErrorCode
from kafkacompat.wire.headers import RequestHeader, request_header_version, response_header_version
from kafkacompat.wire.java_hash import java_string_hash
from kafkacompat.wire.record_batch import (
    NewRecord,
    build_batch,
    check_records,
    crc_matches,
    read_header,
    read_records,
)
from tests.wire.random_messages import LETTERS, Mode, seeded_random, versions_of

MODES = (Mode.DEFAULT, Mode.NULL, Mode.BOUNDARY, Mode.BOUNDARY, *(Mode.RANDOM,) * 8)
FIELDS: dict[str, Any] = {
    "base_offset": 70,
    "producer_id": 5,
    "producer_epoch": 6,
    "base_sequence": 7,
    "leader_epoch": 8,
}
# Java numbers the codecs as we do; 0 is none.
each_codec = pytest.mark.parametrize("codec", range(5), ids=["none", "gzip", "snappy", "lz4", "zstd"])


@pytest.fixture(scope="module")
def oracle() -> Iterator[Oracle]:
    with Oracle() as running:
        yield running


@pytest.fixture(scope="module", params=RELEASES, ids=[release.name for release in RELEASES])
def each_release(request: pytest.FixtureRequest, oracle: Oracle) -> Iterator[Oracle]:
    """Kafka 4.3.1 and 3.9.1 in turn."""
    if request.param is oracle.release:
        yield oracle
    else:
        with Oracle(request.param) as running:
            yield running


def test_messages_have_the_bytes_of_kafka(each_release: Oracle) -> None:
    rng = seeded_random()
    differences = [
        words for case in list_cases(each_release) for words in find_differences(each_release, case, MODES, rng)
    ]
    assert not differences, "\n".join(differences[:5])


def test_every_version_of_every_message_is_judged(oracle: Oracle) -> None:
    with Oracle(KAFKA_3) as older:
        judged = {(case.cls, case.version) for case in list_cases(oracle) + list_cases(older)}
    declared = (message for key in API_NAMES for message in find_api(key))
    assert judged == set(versions_of(*declared, *OTHERS))


def test_the_judges_see_a_difference(each_release: Oracle) -> None:
    ours, theirs = RequestHeader(client_id="id"), kafka_json(RequestHeader(client_id="other"), 1)
    data = encode_message(ours, 1)
    question = {"json": theirs, "hex": data.hex(), "tagged": None, "cuts": [len(data) - 1, len(data)]}
    answer = each_release.ask("messages", name="RequestHeader", version=1, messages=[question])["messages"][0]
    assert answer["written"] != answer["written_again"] == data.hex()
    assert answer["accepted_cuts"] == [len(data)]


def test_versions_and_headers_are_those_of_kafka(each_release: Oracle) -> None:
    for theirs in each_release.ask("apis")["apis"]:
        request, response = find_api(theirs["key"])
        versions = range(theirs["first"], theirs["last"] + 1)
        assert set(versions) <= set(request.VERSIONS)
        assert theirs["request_headers"] == [request_header_version(request, version) for version in versions]
        assert theirs["response_headers"] == [response_header_version(response, version) for version in versions]


def test_error_codes_are_those_of_kafka(oracle: Oracle) -> None:
    assert oracle.ask("errors")["errors"] == {code.name: code.value for code in ErrorCode}


def test_hashes_are_those_of_java(oracle: Oracle) -> None:
    rng = seeded_random()
    texts = ["".join(rng.choices(LETTERS, k=rng.randint(0, 40))) for _ in range(200)]
    assert oracle.ask("hash", texts=texts)["hashes"] == [java_string_hash(text) for text in texts]


def random_records(rng: random.Random, count: int) -> list[NewRecord]:
    return [_random_record(rng) for _ in range(count)]


def _random_record(rng: random.Random) -> NewRecord:
    timestamp = 1_700_000_000_000 + rng.choice((0, 1, 70, -70, 9000, 10**9, -(10**12)))
    key = rng.choice((None, b"", rng.randbytes(10)))
    value = rng.choice((None, b"", b"again and again " * rng.randint(1, 300), rng.randbytes(rng.randint(1, 300))))
    headers = [
        (rng.choice(("", "name", "é😀")), rng.choice((None, b"", b"content"))) for _ in range(rng.choice((0, 0, 2)))
    ]
    return timestamp, key, value, headers


def json_record(timestamp: int, key: bytes | None, value: bytes | None, headers: Any) -> dict[str, object]:
    named = [[name, _as_hex(content)] for name, content in headers]
    return {"timestamp": timestamp, "key": _as_hex(key), "value": _as_hex(value), "headers": named}


def _as_hex(content: bytes | None) -> str | None:
    return None if content is None else content.hex()


@each_codec
@pytest.mark.parametrize("count", [1, 64, 300])
def test_kafka_reads_our_batches(oracle: Oracle, codec: int, count: int) -> None:
    records = random_records(seeded_random(), count)
    batch = build_batch(records, codec=codec, transactional=True, **FIELDS)
    assert oracle.ask("read", hex=(batch + batch).hex())["batches"] == 2 * [
        {
            **FIELDS,
            "last_offset": 69 + count,
            "size_bytes": len(batch),
            "codec": codec,
            "max_timestamp": max(record[0] for record in records),
            "transactional": True,
            "control": False,
            "records": [{"offset": 70 + index, **json_record(*record)} for index, record in enumerate(records)],
        }
    ]


@each_codec
@pytest.mark.parametrize("count", [1, 64, 300])
def test_we_read_the_batches_of_kafka(oracle: Oracle, codec: int, count: int) -> None:
    records = random_records(seeded_random(), count)
    written = [json_record(*record) for record in records]
    answer = oracle.ask("build", codec=codec, transactional=False, records=written, **FIELDS)
    batch = bytes.fromhex(answer["hex"])
    header = read_header(batch)
    producer = (header.producer_id, header.producer_epoch, header.base_sequence)
    assert (header.base_offset, *producer, header.partition_leader_epoch) == tuple(FIELDS.values())
    assert (header.codec, header.record_count) == (codec, count)
    assert crc_matches(batch, header)
    assert list(read_records(batch)) == [(70 + index, *record) for index, record in enumerate(records)]
    newest = check_records(batch, header, keys_required=False, max_decompressed_bytes=10_000_000)
    assert newest == header.max_timestamp == max(record[0] for record in records)


def test_an_uncompressed_batch_of_kafka_has_our_bytes(oracle: Oracle) -> None:
    records = random_records(seeded_random(), 100)
    written = [json_record(*record) for record in records]
    answer = oracle.ask("build", codec=0, transactional=True, records=written, **FIELDS)
    assert answer["hex"] == build_batch(records, transactional=True, **FIELDS).hex()


def test_the_oracle_objects_to_a_damaged_batch(oracle: Oracle) -> None:
    batch = bytearray(build_batch([(0, None, b"value", [])]))
    batch[-2] ^= 1
    with pytest.raises(OracleError, match="CorruptRecordException"):
        oracle.ask("read", hex=batch.hex())
