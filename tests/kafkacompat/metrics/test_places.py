"""Places for series: few, kept, and free again."""

from __future__ import annotations

from types import SimpleNamespace

from kafkacompat.metrics.partitions import PartitionTraffic
from kafkacompat.metrics.places import SeriesPlaces


def test_the_first_keys_have_places_and_keep_them() -> None:
    places: SeriesPlaces[str] = SeriesPlaces(2)
    assert [places.take(key) for key in "abcab"] == [True, True, False, True, True]
    places.keep({"b", "c"})
    assert "a" not in places
    assert places.take("c")
    assert not places.take("a")


class FakeLog:
    """A log of segments (base offset, bytes)."""

    def __init__(self, log_end_offset: int, *segments: tuple[int, int]) -> None:
        self.log_end_offset = log_end_offset
        self.segments = [SimpleNamespace(base_offset=base, size_bytes=size) for base, size in segments]


def read_counts(traffic: PartitionTraffic) -> tuple[int, int, int]:
    return traffic.led_records, traffic.led_bytes, traffic.followed_bytes


def test_growth_belongs_to_the_role_of_its_time() -> None:
    traffic = PartitionTraffic()
    traffic.note_role(True, FakeLog(10, (0, 1000)))
    traffic.note_role(True, FakeLog(12, (0, 1200)))  # another leader epoch of this broker
    traffic.update(FakeLog(15, (0, 1500)))
    assert read_counts(traffic) == (5, 500, 0)
    traffic.note_role(False, FakeLog(15, (0, 1500)))
    traffic.update(FakeLog(40, (0, 1600), (20, 70)))
    assert read_counts(traffic) == (5, 500, 170)
    traffic.note_role(True, FakeLog(40, (20, 70)))
    traffic.update(FakeLog(41, (20, 80)))
    assert read_counts(traffic) == (6, 510, 170)


def test_new_segments_count_whole_and_old_ones_not_at_all() -> None:
    traffic = PartitionTraffic()
    traffic.note_role(True, FakeLog(10, (0, 500), (5, 100)))
    traffic.update(FakeLog(40, (0, 500), (5, 300), (20, 1000), (30, 7)))
    assert read_counts(traffic) == (30, 1207, 0)
    traffic.update(FakeLog(41, (30, 8)))  # retention
    assert read_counts(traffic) == (31, 1208, 0)


def test_a_log_that_was_cut_has_not_grown() -> None:
    traffic = PartitionTraffic()
    traffic.note_role(False, FakeLog(100, (0, 500), (50, 900)))
    traffic.update(FakeLog(20, (0, 200)))
    traffic.update(FakeLog(30, (0, 300)))
    assert read_counts(traffic) == (0, 0, 100)


def test_a_copy_in_another_directory_counts_nothing_twice() -> None:
    traffic = PartitionTraffic()
    traffic.note_role(True, FakeLog(10, (0, 500), (5, 100)))
    traffic.begin_at(FakeLog(10, (0, 600)))
    traffic.update(FakeLog(11, (0, 650)))
    assert read_counts(traffic) == (1, 50, 0)
