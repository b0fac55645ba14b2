"""inter.broker.protocol.version."""

from __future__ import annotations

import pytest

from kafkacompat.config.protocol_version import find_protocol_release, find_version_cap


@pytest.mark.parametrize(
    ("text", "name"),
    [("3.9", "3.9"), ("3.9.1", "3.9"), ("2.8-IV1", "2.8"), (" 3.0 ", "3.0"), ("2.7", None), ("new", None), ("", None)],
)
def test_versions_name_releases(text: str, name: str | None) -> None:
    release = find_protocol_release(text)
    assert (None if release is None else release.name) == name


def test_a_release_caps_the_versions_that_it_knows() -> None:
    release = find_protocol_release("2.8")
    assert release is not None
    assert [find_version_cap(release, key) for key in (1, 4, 56, 67)] == [12, 5, 0, None]
