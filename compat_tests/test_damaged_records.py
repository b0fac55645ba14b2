"""Batches with damaged records: both forms of the walk accept and refuse the same batches as Kafka's own classes."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from compat_tests.oracle import Oracle
from compat_tests.test_wire_oracle import random_records
from kafkacompat.wire import batch_check
from kafkacompat.wire.compression import compress
from kafkacompat.wire.errors import ErrorCode
from kafkacompat.wire.primitives import encode_varint
from kafkacompat.wire.record_batch import (
    HEADER_SIZE,
    InvalidRecordsError,
    NewRecord,
    assemble_batch,
    build_batch,
    check_records,
    read_header,
)
from tests.wire.conftest import FORMS, find_walk
from tests.wire.random_messages import seeded_random

BATCHES = 250
NUMBERS = (
    *(encode_varint(value) for value in (0, -1, -2, 1, 2, 3, 63, 64, 1000, 2**31 - 1, -(2**31))),
    *(b"\x80" * size + end for size in (1, 4, 5, 9, 10) for end in (b"\0", b"\1", b"\x70", b"\x7f")),
)
"""Lengths, among them some that need more bytes or bits than a number may have."""
each_codec = pytest.mark.parametrize("codec", [0, 1, 4], ids=["none", "gzip", "zstd"])


@pytest.fixture(scope="module")
def oracle() -> Iterator[Oracle]:
    with Oracle() as running:
        yield running


def _make_records(rng: random.Random) -> list[NewRecord]:
    count = rng.choice((1, 2, 3, 20, 70))
    records = [rng.choice(random_records(rng, 3))] * count if rng.random() < 0.5 else random_records(rng, count)
    # Counted from 0, so that the sum of base timestamp and a damaged delta fits 64 bits.
    return [
        (timestamp - 1_700_000_000_000, key, (value or b"")[:80], headers) for timestamp, key, value, headers in records
    ]


def _replace_byte(rng: random.Random, body: bytearray) -> None:
    body[rng.randrange(len(body))] = rng.choice((0, 1, 2, 3, 0x7F, 0x80, 0xFF, rng.randrange(256)))


def _insert_number(rng: random.Random, body: bytearray) -> None:
    at = rng.randrange(len(body))
    body[at : at + rng.randint(0, 1)] = rng.choice(NUMBERS)


def _insert_number_and_mend_length(rng: random.Random, body: bytearray) -> None:
    """Put a number into the first record, whose length counts it."""
    if 2 <= body[0] < 0x60 and not body[0] & 1:
        number, replaced = rng.choice(NUMBERS), rng.randint(0, 1)
        at = rng.randint(1, body[0] >> 1)
        body[at : at + replaced] = number
        body[0] = min(body[0] + 2 * (len(number) - replaced), 0x7E)


def _cut_body(rng: random.Random, body: bytearray) -> None:
    del body[rng.randrange(len(body)) :]


DAMAGES: tuple[Callable[[random.Random, bytearray], None], ...] = (
    *(_replace_byte,) * 3,
    _insert_number,
    *(_insert_number_and_mend_length,) * 4,
    _cut_body,
)


def _make_damaged(rng: random.Random, codec: int) -> bytes:
    batch = build_batch(_make_records(rng))
    body = bytearray(batch[HEADER_SIZE:])
    for _ in range(rng.choice((0, 1, 1, 1, 2))):
        if body:
            rng.choice(DAMAGES)(rng, body)
    header = read_header(batch)._replace(attributes=codec, base_timestamp=0)
    return assemble_batch(header, compress(codec, bytes(body)))


def _find_expected(verdict: dict[str, Any]) -> str:
    """Return the code of our answer to a batch that Kafka judges so.

    Kafka accepts two kinds that we refuse. Where offsets do not count up, it accepts an uncompressed batch. In a
    compressed one its broker does not compare a record's length with its fields, but its consumers do.
    """
    accepted = verdict["broker"] == verdict["consumer"] == "NONE" and verdict["counts_up"]
    return "NONE" if accepted else "INVALID_RECORD"


def _check_batch(batch: bytes, keys: bool) -> tuple[str, int | None]:
    try:
        return "NONE", check_records(batch, read_header(batch), keys_required=keys, max_decompressed_bytes=1 << 20)
    except InvalidRecordsError as problem:
        return problem.code.name, None


@each_codec
@pytest.mark.parametrize("keys", [False, True], ids=["without keys", "with keys"])
def test_damaged_batches_are_judged_as_by_kafka(
    oracle: Oracle, codec: int, keys: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = seeded_random()
    batches = [_make_damaged(rng, codec) for _ in range(BATCHES)]
    verdicts = oracle.ask("judge", keys=keys, batches=[batch.hex() for batch in batches])["verdicts"]
    for form in FORMS:
        monkeypatch.setattr(batch_check, "walk", find_walk(form))
        for batch, verdict in zip(batches, verdicts, strict=True):
            code, newest = _check_batch(batch, keys)
            assert code == _find_expected(verdict), (form, batch.hex(), verdict)
            if newest is not None:
                # To Kafka -1, no time, is the smallest timestamp.
                assert max(newest, -1) == verdict["max_timestamp"], (form, batch.hex())


@each_codec
def test_kafka_judges_both_ways(oracle: Oracle, codec: int) -> None:
    rng = seeded_random()
    batches = [_make_damaged(rng, codec).hex() for _ in range(BATCHES)]
    codes = [verdict["broker"] for verdict in oracle.ask("judge", keys=False, batches=batches)["verdicts"]]
    assert codes.count("NONE") > 20
    assert codes.count("INVALID_RECORD") > 20
    assert set(codes) <= {"NONE", ErrorCode.INVALID_RECORD.name, ErrorCode.UNKNOWN_SERVER_ERROR.name}
