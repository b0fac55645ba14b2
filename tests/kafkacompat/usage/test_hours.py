"""Usage by hours, without I/O."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kafkacompat.usage.figures import InstanceUsage
from kafkacompat.usage.hours import HOUR_MS, HourlyUsage

BEGIN_MS = 1_700_000_000_000 // HOUR_MS * HOUR_MS
MINUTE_MS = 60_000


def usage(**figures: Any) -> InstanceUsage:
    """Figures that are 0 unless given."""
    zeros: dict[str, Any] = dict.fromkeys(InstanceUsage._fields, 0)
    return InstanceUsage(**{**zeros, **figures})


def close_hour(hours: HourlyUsage, now_ms: int) -> None:
    for _ in hours.close_hour(now_ms):
        pass


def save(hours: HourlyUsage) -> bytes:
    lines: list[bytes] = []
    for _ in hours.save(lines):
        pass
    return b"".join(lines)


def values(hours: HourlyUsage) -> list[dict[str, Any]]:
    return [json.loads(record.value) for record in hours.unwritten]


def test_a_record_has_what_an_hour_has_added() -> None:
    hours = HourlyUsage(3, BEGIN_MS)
    hours.note("shop", usage(produced_bytes=100, stored_bytes=50, groups=2), BEGIN_MS)
    hours.note("shop", usage(produced_bytes=150, fetched_bytes=7, stored_bytes=30), BEGIN_MS + MINUTE_MS)
    hours.note("shop", usage(produced_bytes=170, fetched_bytes=9, stored_bytes=30), BEGIN_MS + HOUR_MS)
    close_hour(hours, BEGIN_MS + HOUR_MS)
    assert [record.key for record in hours.unwritten] == ["shop/2023-11-14T22:00:00Z/3"]
    record = values(hours)[0]
    assert record["produced_bytes"] == 170 and record["fetched_bytes"] == 9
    assert (record["max_stored_bytes"], record["max_groups"], record["measured_ms"]) == (50, 2, HOUR_MS)
    assert record["mean_stored_bytes"] == (50 * MINUTE_MS + 30 * 59 * MINUTE_MS) // HOUR_MS
    assert (record["instance"], record["broker"], record["hour"]) == ("shop", 3, "2023-11-14T22:00:00Z")


def test_the_next_hour_begins_with_nothing() -> None:
    hours = HourlyUsage(1, BEGIN_MS)
    hours.note("shop", usage(produced_bytes=100), BEGIN_MS + HOUR_MS - 1)
    close_hour(hours, BEGIN_MS + HOUR_MS)
    hours.note("shop", usage(produced_bytes=130), BEGIN_MS + 2 * HOUR_MS)
    close_hour(hours, BEGIN_MS + 2 * HOUR_MS)
    assert [record["produced_bytes"] for record in values(hours)] == [100, 30]
    assert values(hours)[1]["measured_ms"] == HOUR_MS


def test_a_restart_continues_the_hour() -> None:
    hours = HourlyUsage(1, BEGIN_MS)
    hours.note("shop", usage(produced_bytes=100), BEGIN_MS + MINUTE_MS)
    after = HourlyUsage(1, BEGIN_MS + 2 * MINUTE_MS)
    after.load(save(hours), BEGIN_MS + 2 * MINUTE_MS)
    # The counters of the new process begin with 0.
    after.note("shop", usage(produced_bytes=5), BEGIN_MS + 3 * MINUTE_MS)
    close_hour(after, BEGIN_MS + HOUR_MS)
    assert [record["produced_bytes"] for record in values(after)] == [105]


def test_a_restart_in_a_later_hour_makes_the_record_of_the_earlier_one() -> None:
    hours = HourlyUsage(1, BEGIN_MS)
    hours.note("shop", usage(produced_bytes=100), BEGIN_MS + MINUTE_MS)
    after = HourlyUsage(1, BEGIN_MS + 5 * HOUR_MS)
    after.load(save(hours), BEGIN_MS + 5 * HOUR_MS)
    assert [record.key for record in after.unwritten] == ["shop/2023-11-14T22:00:00Z/1"]
    assert after.hour_ms == BEGIN_MS + 5 * HOUR_MS


def test_unwritten_records_outlive_a_restart_as_they_are() -> None:
    hours = HourlyUsage(1, BEGIN_MS)
    hours.note("shop", usage(produced_bytes=1), BEGIN_MS)
    close_hour(hours, BEGIN_MS + HOUR_MS)
    after = HourlyUsage(1, BEGIN_MS + HOUR_MS)
    after.load(save(hours), BEGIN_MS + HOUR_MS)
    assert after.unwritten == hours.unwritten != []


def test_an_instance_that_is_created_again_counts_from_zero() -> None:
    hours = HourlyUsage(1, BEGIN_MS)
    hours.note("shop", usage(produced_bytes=100), BEGIN_MS)
    hours.note("shop", usage(produced_bytes=20), BEGIN_MS + MINUTE_MS)
    close_hour(hours, BEGIN_MS + HOUR_MS)
    assert values(hours)[0]["produced_bytes"] == 120


def test_a_deleted_instance_still_gets_its_record() -> None:
    hours = HourlyUsage(1, BEGIN_MS)
    hours.note("shop", usage(produced_bytes=100), BEGIN_MS)
    hours.forget_absent(set())
    close_hour(hours, BEGIN_MS + HOUR_MS)
    close_hour(hours, BEGIN_MS + 2 * HOUR_MS)
    assert [record["produced_bytes"] for record in values(hours)] == [100]


def test_a_clock_that_is_set_back_a_little_begins_no_hour() -> None:
    hours = HourlyUsage(1, BEGIN_MS)
    hours.note("shop", usage(produced_bytes=100), BEGIN_MS)
    assert not hours.is_over(BEGIN_MS - HOUR_MS // 2)
    # A clock that was years ahead must not keep all hours until then from being recorded.
    assert hours.is_over(BEGIN_MS - 5 * HOUR_MS)
    hours.note("shop", usage(produced_bytes=200), BEGIN_MS - MINUTE_MS)
    close_hour(hours, BEGIN_MS + HOUR_MS)
    assert (values(hours)[0]["produced_bytes"], values(hours)[0]["measured_ms"]) == (200, 0)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"x",
        b"[]",
        b"{}",
        b'{"version": 9}',
        b'{"version": 1, "hour_ms": 1}\n{"instance": "a", "sums": {"x": "y"}}',
    ],
)
def test_a_damaged_state_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError):  # each has another text
        HourlyUsage(1, BEGIN_MS).load(data, BEGIN_MS)
