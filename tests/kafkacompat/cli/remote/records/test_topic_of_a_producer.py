"""The topic that a producer writes: it exists, is created by the broker, or is missing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kafkacompat.cli.remote.errors import RemoteError
from kafkacompat.cli.remote.records.consume_run import open_output
from kafkacompat.cli.remote.records.failures import OptionError
from kafkacompat.cli.remote.records.produce_run import UNKNOWN_ATTEMPTS, open_input, require_topic
from kafkacompat.wire.apis.metadata import MetadataResponse, MetadataResponseTopic
from kafkacompat.wire.errors import ErrorCode

UNKNOWN, LEADERLESS = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.LEADER_NOT_AVAILABLE


class StubCluster:
    """Returns these error codes for a topic, the last one for ever."""

    def __init__(self, *codes: ErrorCode) -> None:
        self._codes = list(codes)

    def request(self, *_: Any) -> MetadataResponse:
        code = self._codes.pop(0) if len(self._codes) > 1 else self._codes[0]
        return MetadataResponse(topics=[MetadataResponseTopic(name="orders", error_code=code)])

    def read_topics(self) -> list[MetadataResponseTopic]:
        return [MetadataResponseTopic(name="orders2")]


def require(*codes: ErrorCode) -> int:
    """Require the topic; return how often that waited."""
    waits: list[float] = []
    cluster: Any = StubCluster(*codes)
    require_topic(cluster, "orders", waits.append)
    return len(waits)


def test_a_topic_that_the_broker_creates_is_waited_for() -> None:
    assert require(ErrorCode.NONE) == 0
    assert require(UNKNOWN, UNKNOWN, LEADERLESS, ErrorCode.NONE) == 3
    assert require(*[LEADERLESS] * (UNKNOWN_ATTEMPTS + 5), ErrorCode.NONE) == UNKNOWN_ATTEMPTS + 5


def test_a_topic_that_is_missing_or_refused() -> None:
    with pytest.raises(
        RemoteError, match=r"there is no topic orders \(did you mean orders2\?\): create it by `kafkacompat"
    ):
        require(UNKNOWN)
    with pytest.raises(
        RemoteError, match="topic orders cannot be written: the user of --command-config lacks the right"
    ):
        require(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    with pytest.raises(RemoteError, match="topic orders cannot be written: LEADER_NOT_AVAILABLE"):
        require(LEADERLESS)


def test_files_that_cannot_be_opened(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"the input cannot be read: .*: there is no such file or folder"):
        open_input(tmp_path / "missing")
    with (
        pytest.raises(OptionError, match=r"--output cannot be written: .*: there is no such"),
        open_output(tmp_path / "a" / "b"),
    ):
        pass
