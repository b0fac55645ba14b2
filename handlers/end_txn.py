"""EndTxn (key 26), v0-5: commit or abort a transaction.

v2     PRODUCER_FENCED instead of INVALID_PRODUCER_EPOCH
v3     flexible
v4     as v3; the client knows TRANSACTION_ABORTABLE (KIP-890)
v5     transaction version 2: every transaction has its own epoch, and the response has the next one
"""

from __future__ import annotations

from kafkacompat.handlers.context import Pending, RequestContext, Services
from kafkacompat.handlers.fencing import as_fencing_code
from kafkacompat.transactions.answers import ProducerAnswer
from kafkacompat.transactions.state import EPOCH_BUMP_VERSION, Ending
from kafkacompat.transactions.transaction import ProducerIdentity
from kafkacompat.wire.apis.end_txn import EndTxnRequest, EndTxnResponse

PRODUCER_FENCED_VERSION = 2
OWN_EPOCHS_VERSION = 5


def handle_end_txn(request: EndTxnRequest, context: RequestContext, services: Services) -> Pending[EndTxnResponse]:
    """End the transaction; answer when its outcome is durable."""
    ended = services.coordinators.transactions.end(
        request.transactional_id,
        ProducerIdentity(request.producer_id, request.producer_epoch),
        Ending.COMMIT if request.committed else Ending.ABORT,
        EPOCH_BUMP_VERSION if context.api_version >= OWN_EPOCHS_VERSION else 0,
    )
    return Pending(ended.addCallback(_build_response, context.api_version), in_order=True)


def _build_response(answer: ProducerAnswer, version: int) -> EndTxnResponse:
    producer_id, producer_epoch = answer.producer
    code = as_fencing_code(answer.error_code, version, PRODUCER_FENCED_VERSION)
    return EndTxnResponse(error_code=code, producer_id=producer_id, producer_epoch=producer_epoch)
