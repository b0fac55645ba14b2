"""Releases by the versions that a broker serves."""

from __future__ import annotations

import pytest

from kafkacompat.cli.remote.doctor.releases import describe_release
from kafkacompat.wire.releases import find_release
from kafkacompat.wire.schema import Versions


@pytest.mark.parametrize(
    ("name", "text"),
    [("0.10.0", "0.10.0"), ("2.8", "2.8"), ("3.3", "3.3 to 3.4"), ("3.9", "3.9"), ("4.3", "4.3")],
)
def test_each_release_is_recognised(name: str, text: str) -> None:
    assert describe_release(find_release(name).versions) == f"the versions of Kafka {text}"


def test_kafka_4_lists_produce_from_version_0() -> None:
    versions = dict(find_release("4.3").versions)
    versions[0] = Versions(0, versions[0].last)
    assert describe_release(versions) == "the versions of Kafka 4.3"


def test_the_nearest_release_is_named() -> None:
    versions = dict(find_release("3.9").versions)
    del versions[36]
    assert describe_release(versions) == "versions nearest to those of Kafka 3.9, from which 1 API differs"
    versions |= {999: Versions(0, 0), 1: Versions(0, 18)}
    assert describe_release(versions) == (
        "versions nearest to those of Kafka 3.9, from which 3 APIs differ; it serves clients of every release"
    )
