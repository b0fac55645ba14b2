"""Produce to an instance without room: a late answer that clients retry, and everything else goes on."""

from __future__ import annotations

import pytest

from kafkacompat.config.instances import Instance
from kafkacompat.handlers.context import Pending, UnanswerableError
from kafkacompat.tenancy.capacity import StorageAccount
from kafkacompat.wire.apis.produce import ProduceResponse
from kafkacompat.wire.errors import ErrorCode
from tests.handlers.data_node import DataNode, make_batch
from tests.handlers.test_produce import ONE_BATCH, ask, make_request
from tests.kafkacompat.metadata.deferreds import has_fired, outcome


def make_full(error: str = "retriable") -> tuple[DataNode, StorageAccount]:
    """A node whose topic t belongs to an instance without room; u is of another one."""
    node = DataNode()
    given = {"limit.storage.bytes": "0", "limit.storage.error": error}
    account = StorageAccount(Instance("shop", given))
    for index in (0, 1):
        node.node.replicas.find("t", index).state.use_account(account)
    return node, account


@pytest.mark.parametrize("version", [3, 7, 9, 11])
@pytest.mark.parametrize("acks", [1, -1])
def test_the_answer_comes_late_and_is_retriable(version: int, acks: int) -> None:
    node, account = make_full()
    answer = node.send(make_request(make_batch(), make_batch(), acks=acks), version)
    assert isinstance(answer, Pending) and not answer.in_order
    node.node.clock.advance(0.4)
    assert not has_fired(answer.response)
    node.node.clock.advance(0.2)
    response = node.read(answer, ProduceResponse, version)
    codes = [partition.error_code for partition in response.responses[0].partition_responses]
    assert codes == [ErrorCode.NOT_ENOUGH_REPLICAS] * 2
    assert account.stored_bytes == 0
    if version >= 8:
        message = response.responses[0].partition_responses[0].error_message
        assert message is not None and message.startswith("0 bytes are stored and limit.storage.bytes is 0")


def test_requests_that_follow_are_not_delayed() -> None:
    node, _ = make_full()
    held = node.send(make_request(make_batch()), 9)
    assert isinstance(held, Pending)
    assert [response.error_code for response in ask(node, make_request(make_batch(), name="u"))] == [0]


def test_a_final_error_comes_at_once() -> None:
    node, _ = make_full("final")
    assert [response.error_code for response in ask(node, make_request(make_batch()))] == [ErrorCode.POLICY_VIOLATION]


def test_without_acks_the_connection_is_closed_at_once() -> None:
    node, _ = make_full()
    with pytest.raises(UnanswerableError, match="NOT_ENOUGH_REPLICAS"):
        node.send(make_request(make_batch(), acks=0), 9)


def test_room_lets_the_same_batch_pass() -> None:
    node, account = make_full()
    batch = make_batch()
    assert isinstance(node.send(make_request(batch), 9), Pending)
    account.configure(Instance("shop", {}))
    assert [response.error_code for response in ask(node, make_request(batch))] == [0]
    assert account.stored_bytes == len(batch)


def test_a_batch_that_waits_for_a_turn_is_refused_late_too() -> None:
    node, _ = make_full()
    large = make_batch(3000, value=b"v" * 1000, codec=1)
    answer = node.send(make_request(large), 9)
    assert isinstance(answer, Pending) and answer.in_order
    for _ in range(5):
        node.workers.disk.work()
        node.node.clock.advance(0.2)
    result = outcome(answer.response)
    assert result.responses[0].partition_responses[0].error_code == ErrorCode.NOT_ENOUGH_REPLICAS


def test_only_the_appends_of_a_refused_request_hold_up_the_next_one() -> None:
    node = DataNode(ONE_BATCH)
    node.append("t", 0)
    full = StorageAccount(Instance("shop", {"limit.storage.bytes": "0"}))
    node.node.replicas.find("t", 1).state.use_account(full)
    # The batch for partition 0 waits for a new segment.
    answer = node.send(make_request(make_batch(), make_batch()), 9)
    assert isinstance(answer, Pending) and answer.in_order and answer.settled is not None
    node.node.work()
    assert has_fired(answer.settled) and not has_fired(answer.response)
    node.node.clock.advance(0.6)
    (topic,) = node.read(answer, ProduceResponse, 9).responses
    assert [partition.error_code for partition in topic.partition_responses] == [0, ErrorCode.NOT_ENOUGH_REPLICAS]
