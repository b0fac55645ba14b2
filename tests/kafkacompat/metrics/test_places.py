"""Places for series: few, kept, and free again."""

from __future__ import annotations

from kafkacompat.metrics.partitions import PartitionTraffic
from kafkacompat.metrics.places import SeriesPlaces


def test_the_first_keys_have_places_and_keep_them() -> None:
    places: SeriesPlaces[str] = SeriesPlaces(2)
    assert [places.take(key) for key in "abcab"] == [True, True, False, True, True]
    places.keep({"b", "c"})
    assert "a" not in places
    assert places.take("c")
    assert not places.take("a")


def test_records_count_only_while_this_broker_leads() -> None:
    traffic = PartitionTraffic()
    assert traffic.count_records(7) == 0
    traffic.note_role(True, 10)
    traffic.note_role(True, 12)  # another leader epoch of this broker
    assert traffic.count_records(15) == 5
    traffic.note_role(False, 15)
    assert traffic.count_records(40) == 5
    traffic.note_role(True, 40)
    assert traffic.count_records(41) == 6
