"""Blocks of producer ids come from the controller, to brokers that are registered."""

from __future__ import annotations

from kafkacompat.wire.apis.allocate_producer_ids import AllocateProducerIdsRequest
from kafkacompat.wire.errors import ErrorCode
from tests.kafkacompat.three_brokers.support import Cluster


def test_only_registered_brokers_receive_blocks_and_each_block_once() -> None:
    cluster = Cluster()
    controller = cluster.controller()

    def allocate(node: int, epoch: int) -> tuple[ErrorCode, int]:
        response = cluster.ask(controller, AllocateProducerIdsRequest(broker_id=node, broker_epoch=epoch))
        return ErrorCode(response.error_code), response.producer_id_start

    epochs = {node: cluster.side(node).member.registration.epoch for node in (1, 2)}
    assert allocate(1, epochs[1]) == (ErrorCode.NONE, 0)
    assert allocate(2, epochs[2]) == (ErrorCode.NONE, 1000)
    assert allocate(1, epochs[1] - 1)[0] == ErrorCode.STALE_BROKER_EPOCH
    assert allocate(9, epochs[1])[0] == ErrorCode.BROKER_ID_NOT_REGISTERED
