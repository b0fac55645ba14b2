"""InitProducerId (key 22), v0-5: a producer id and epoch, for idempotent or transactional writes.

v2     flexible
v3     the client may tell the id and epoch it has (KIP-360)
v4     PRODUCER_FENCED instead of INVALID_PRODUCER_EPOCH
v5     as v4; the client knows TRANSACTION_ABORTABLE (KIP-890)
"""

from __future__ import annotations

from twisted.internet.defer import Deferred

from kafkacompat.handlers.context import Pending, RequestContext, Services
from kafkacompat.handlers.fencing import as_fencing_code
from kafkacompat.transactions.answers import NOBODY, ProducerAnswer
from kafkacompat.transactions.transaction import ProducerIdentity
from kafkacompat.wire.apis.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kafkacompat.wire.errors import ErrorCode, KafkaError

PRODUCER_FENCED_VERSION = 4
NONE = -1


def handle_init_producer_id(
    request: InitProducerIdRequest, context: RequestContext, services: Services
) -> InitProducerIdResponse | Pending[InitProducerIdResponse]:
    """Give a new id with epoch 0, or what the coordinator gives to a transactional id.

    An idempotent producer that had an id before gets another.
    """
    if (request.producer_id == NONE) != (request.producer_epoch == NONE) or request.transactional_id == "":
        return _build_response(ProducerAnswer(ErrorCode.INVALID_REQUEST))
    if request.transactional_id is None:
        return Pending(Deferred.fromCoroutine(_allocate_id(services)))
    if not 0 < request.transaction_timeout_ms <= services.coordinators.transactions.settings.transaction_max_timeout_ms:
        return _build_response(ProducerAnswer(ErrorCode.INVALID_TRANSACTION_TIMEOUT))
    claimed = ProducerIdentity(request.producer_id, request.producer_epoch)
    expected = None if claimed == NOBODY else claimed
    answer = services.coordinators.transactions.initialize(
        request.transactional_id, request.transaction_timeout_ms, expected
    )
    return Pending(answer.addCallback(_build_response, context.api_version), in_order=True)


async def _allocate_id(services: Services) -> InitProducerIdResponse:
    try:
        return InitProducerIdResponse(producer_id=await services.controller.producer_ids.next())
    except KafkaError as problem:
        return _build_response(ProducerAnswer(problem.code))


def _build_response(answer: ProducerAnswer, version: int = PRODUCER_FENCED_VERSION) -> InitProducerIdResponse:
    producer_id, producer_epoch = answer.producer
    code = as_fencing_code(answer.error_code, version, PRODUCER_FENCED_VERSION)
    return InitProducerIdResponse(error_code=code, producer_id=producer_id, producer_epoch=producer_epoch)
