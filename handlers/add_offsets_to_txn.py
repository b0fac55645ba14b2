"""AddOffsetsToTxn (key 25), v0-4: a transaction will commit offsets of a group.

v2     PRODUCER_FENCED instead of INVALID_PRODUCER_EPOCH
v3     flexible
v4     as v3; the client knows TRANSACTION_ABORTABLE (KIP-890)

Clients of transaction version 2 do not send it: their TxnOffsetCommit does the same.
"""

from __future__ import annotations

from twisted.internet.defer import Deferred

from kafkacompat.groups.offsets_topic import OFFSETS_TOPIC
from kafkacompat.handlers.context import Pending, RequestContext, Services
from kafkacompat.handlers.fencing import as_fencing_code
from kafkacompat.transactions.transaction import ProducerIdentity
from kafkacompat.wire.apis.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from kafkacompat.wire.errors import ErrorCode

PRODUCER_FENCED_VERSION = 2


def handle_add_offsets_to_txn(
    request: AddOffsetsToTxnRequest, context: RequestContext, services: Services
) -> AddOffsetsToTxnResponse | Pending[AddOffsetsToTxnResponse]:
    """Add the partition of the offsets topic that the group belongs to."""
    partition = (OFFSETS_TOPIC, services.coordinators.groups.partition_for(request.group_id))
    producer = ProducerIdentity(request.producer_id, request.producer_epoch)
    code = services.coordinators.transactions.add_partitions(
        request.transactional_id, producer, [partition], client_version=0
    )
    if isinstance(code, Deferred):
        return Pending(code.addCallback(_build_response, context.api_version), in_order=True)
    return _build_response(code, context.api_version)


def _build_response(code: ErrorCode, version: int) -> AddOffsetsToTxnResponse:
    return AddOffsetsToTxnResponse(error_code=as_fencing_code(code, version, PRODUCER_FENCED_VERSION))
