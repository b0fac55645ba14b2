"""The sums of what instances store on all brokers."""

from __future__ import annotations

from random import Random

from kafkacompat.tenancy.storage_sums import GRACE_MS, StorageSums


def test_the_total_is_the_sum_of_the_last_reports() -> None:
    sums = StorageSums(0)
    sums.note(1, {"shop": 5, "bank": 1})
    sums.note(2, {"shop": 7})
    sums.note(1, {"shop": 2})
    assert sums.find_totals(["shop", "bank", "zoo"], (1, 2), 0) == {"shop": 9, "bank": 0, "zoo": 0}


def test_a_new_controller_waits_for_all_brokers() -> None:
    sums = StorageSums(1000)
    sums.note(1, {"shop": 5})
    assert sums.find_totals(["shop"], (1, 2), 1000) == {}
    # A broker that never reports, as one of an earlier release, keeps nobody waiting for ever.
    assert sums.find_totals(["shop"], (1, 2), 1000 + GRACE_MS) == {"shop": 5}
    sums.note(2, {"shop": 1})
    assert sums.find_totals(["shop"], (1, 2), 1001) == {"shop": 6}


def test_a_broker_that_is_gone_does_not_count() -> None:
    sums = StorageSums(0)
    sums.note(1, {"shop": 5})
    sums.note(2, {"shop": 7})
    assert sums.find_totals(["shop"], (1,), 0) == {"shop": 5}
    assert sums.find_totals(["shop"], (1, 2), GRACE_MS) == {"shop": 5}


def test_sums_equal_those_from_scratch_after_any_reports() -> None:
    rng, sums = Random(1), StorageSums(-GRACE_MS)
    known: dict[int, dict[str, int]] = {}
    for _ in range(500):
        broker = rng.randrange(5)
        known[broker] = {name: rng.randrange(100) for name in rng.sample("abcdef", 3)}
        sums.note(broker, known[broker])
        totals = sums.find_totals("abcdef", tuple(known), 0)
        assert totals == {name: sum(report.get(name, 0) for report in known.values()) for name in "abcdef"}
