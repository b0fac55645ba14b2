"""InitProducerId (key 22), v0-5: an id for an idempotent producer.

v2     flexible
v3     the client may tell the id and epoch it has (KIP-360)
v4     PRODUCER_FENCED instead of INVALID_PRODUCER_EPOCH

Transactions are not served: a transactional id is answered UNSUPPORTED_VERSION, which clients take for final.
COORDINATOR_NOT_AVAILABLE would let them ask again until their time is up, a minute for most.
"""

from __future__ import annotations

from twisted.internet.defer import Deferred

from kafkacompat.handlers.context import Pending, RequestContext, Services
from kafkacompat.wire.apis.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kafkacompat.wire.errors import ErrorCode, KafkaError

NONE = -1


def handle_init_producer_id(
    request: InitProducerIdRequest, context: RequestContext, services: Services
) -> InitProducerIdResponse | Pending[InitProducerIdResponse]:
    """Give a new id with epoch 0; an idempotent producer that had one before gets another."""
    if (request.producer_id == NONE) != (request.producer_epoch == NONE) or request.transactional_id == "":
        return _refuse(ErrorCode.INVALID_REQUEST)
    if request.transactional_id is not None:
        return _refuse(ErrorCode.UNSUPPORTED_VERSION)
    return Pending(Deferred.fromCoroutine(_allocate(services)))


async def _allocate(services: Services) -> InitProducerIdResponse:
    try:
        return InitProducerIdResponse(producer_id=await services.controller.producer_ids.next())
    except KafkaError as problem:
        return _refuse(problem.code)


def _refuse(code: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=code, producer_id=NONE, producer_epoch=NONE)
