"""What docs/tools.md shows works as it stands there: its commands in order, on one broker, with their output."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from kafkacompat.wire.apis.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kafkacompat.wire.record_batch import build_batch
from tests.kafkacompat.cli.remote.test_acls_and_users import AUTHORIZER
from tests.kafkacompat.cli.remote.world import RemoteWorld

PAGE = Path(__file__).parents[4] / "docs" / "tools.md"
BLOCK = re.compile(
    r"^## (?P<title>[^\n]*)$|^    (?P<command>kafkacompat [^\n]*)$|^```(?P<kind>\w*)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
FED_COMMAND = re.compile(r"echo ([^\n|]*) \| (kafkacompat [^\n]*)\n")


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RemoteWorld:
    """A broker with an authorizer."""
    return RemoteWorld(tmp_path, monkeypatch, AUTHORIZER)


def fill_partition(world: RemoteWorld) -> None:
    """Append five records to the first partition of orders."""
    (topic,) = world.read("topics", "describe", "orders")
    assert topic["partition_count"] == 6
    topic_id = world.broker.metadata.image.topics["orders"].topic_id
    batch = build_batch([(int(world.clock.seconds() * 1000), b"k", b"v", []) for _ in range(5)])
    data = TopicProduceData(
        name="orders", topic_id=topic_id, partition_data=[PartitionProduceData(index=0, records=batch)]
    )
    (answered,) = world.ask(ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[data])).responses
    assert answered.partition_responses[0].error_code == 0


def test_the_commands_of_the_page_and_their_output(world: RemoteWorld) -> None:
    prepare: dict[str | None, Callable[[], object]] = {
        "Groups": lambda: fill_partition(world),
        "Transactions": lambda: world.begin_transaction("billing-1", "orders"),
    }
    shown, commands, outputs = "", 0, 0
    for match in BLOCK.finditer(PAGE.read_text()):
        if match["title"] in prepare:
            prepare[match["title"]]()
        if match["text"] and not match["kind"]:
            assert shown == match["text"]
            outputs += 1
        fed = FED_COMMAND.fullmatch(match["text"] or "")
        line = fed[2] if fed else match["command"]
        if line:
            shown = world.succeed(*shlex.split(line)[1:], stdin=f"{fed[1]}\n" if fed else None).stdout
            commands += 1
    assert commands > 25 and outputs > 8
