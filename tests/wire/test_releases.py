"""The versions that each release served."""

from __future__ import annotations

import pytest

from kafkacompat.wire.apis import API_NAMES, find_api
from kafkacompat.wire.releases import RELEASES, find_release
from kafkacompat.wire.schema import Versions


def test_a_release_has_the_versions_of_its_predecessor_and_its_changes() -> None:
    assert RELEASES[0] == "0.8.2" and RELEASES[-1] == "4.3"
    assert find_release("0.8.2").versions[8] == Versions(0, 1)
    assert find_release("0.10.0").versions[18] == find_release("0.10.2").versions[18] == Versions(0, 0)
    assert find_release("3.2").versions[4] == Versions(0, 6)
    assert 4 not in find_release("3.3").versions
    assert (find_release("3.9").versions[0], find_release("4.3").versions[0]) == (Versions(0, 11), Versions(3, 13))


@pytest.mark.parametrize("name", RELEASES)
def test_whatever_was_served_was_released(name: str) -> None:
    versions = find_release(name).versions
    assert versions.keys() <= API_NAMES.keys()
    for key, served in versions.items():
        released = find_api(key).request.VERSIONS
        assert released.first <= served.first <= served.last <= released.last, key


def test_releases_are_in_order() -> None:
    assert find_release("2.4").is_since("2.4")
    assert find_release("0.11.0").is_since("0.9.0")
    assert not find_release("0.10.2").is_since("0.11.0")
