"""Records as they came back are compared with those that were sent."""

from __future__ import annotations

import pytest

from compat_tests.matrix.records import (
    CONTENTS,
    HEADERS,
    TIMESTAMPS,
    Record,
    compare_records,
    make_header,
    make_key,
    make_value,
    number_of,
)

BASE = 1_700_000_000_000


def make_records(first: int = 0, count: int = 200) -> list[Record]:
    """Return records as a faithful client reads them: by key in two partitions."""
    records = []
    ends = [0, 0]
    for number in range(first, first + count):
        partition = number % 50 % 2
        record = Record(
            partition, ends[partition], make_key(number), make_value(number), BASE + number, make_header(number)
        )
        ends[partition] += 1
        records.append(record)
    return records


def list_problems(records: list[Record], first: int = 0, count: int = 200) -> dict[str, str]:
    return compare_records(records, first, count, BASE)


def test_faithful_records_have_no_problem() -> None:
    assert list_problems(make_records()) == {}
    assert list_problems(make_records(300, 100), 300, 100) == {}


def test_partitions_may_come_in_any_order() -> None:
    assert list_problems(sorted(make_records())) == {}


@pytest.mark.parametrize(
    ("change", "aspect", "words"),
    [
        ({"key": "key-9"}, CONTENTS, "record 5 has key 'key-9', not 'key-5'"),
        ({"value": "something else"}, CONTENTS, "record -1 has value"),
        ({"header": None}, HEADERS, "record 5 has header None, not 'header-0'"),
        ({"timestamp": -1}, TIMESTAMPS, f"record 5 has timestamp -1, not {BASE + 5}"),
        ({"offset": 90}, CONTENTS, "partition 1: offsets do not ascend"),
    ],
)
def test_a_changed_record_is_found(change: dict[str, object], aspect: str, words: str) -> None:
    records = make_records()
    records[5] = records[5]._replace(**change)  # type: ignore[arg-type]
    problems = list_problems(records)
    assert problems.keys() == {aspect}
    assert problems[aspect].startswith(words)


def test_a_missing_record_is_found() -> None:
    records = make_records()
    del records[7]
    assert list_problems(records)[CONTENTS] == "1 of 200 records are missing, the first is 7"


def test_a_record_of_others_is_found() -> None:
    assert list_problems(make_records(count=201))[CONTENTS] == "1 records of others came too, the first is 200"


def test_a_record_that_came_twice_is_found() -> None:
    records = make_records()
    assert list_problems([*records, records[-1]])[CONTENTS] == "1 records came twice"


def test_another_order_is_found() -> None:
    records = make_records()
    records[10], records[12] = (
        records[12]._replace(offset=records[10].offset),
        records[10]._replace(offset=records[12].offset),
    )
    assert list_problems(records)[CONTENTS] == "partition 0: records are not in the order in which they were sent"


def test_a_key_in_two_partitions_is_found() -> None:
    records = make_records()
    records[-1] = records[-1]._replace(partition=0, offset=1000)
    assert list_problems(records)[CONTENTS] == "key-49 is in 2 partitions"


def test_number_of() -> None:
    assert number_of(make_records()[42]) == 42
    assert number_of(Record(0, 0, None, None)) == -1
