"""Writing the changes of transactional ids. A change applies once its record is in the log."""

from __future__ import annotations

from typing import Protocol

from twisted.internet.defer import Deferred, succeed

from kafkacompat.transactions.records import transaction_record
from kafkacompat.transactions.registry import TransactionalId, TransactionalIdRegistry
from kafkacompat.transactions.state import COMPLETION
from kafkacompat.transactions.transaction import NO_EPOCH, TransactionMetadata
from kafkacompat.wire.errors import ErrorCode


class Completer(Protocol):
    """The interface to the completion of decided transactions."""

    def begin_completion(self, transactional_id: TransactionalId) -> None:
        """Complete a transaction: the log has the decision how it ends."""
        ...

    def retry_completion(self, transactional_id: TransactionalId) -> None:
        """Retry to write the completion, which the log has rejected; every partition has its marker."""
        ...


class TransactionWriter:
    """Writes changes to the log, one at a time for each transactional id.

    A client may get its response at the deadline (request.timeout.ms), before the log has accepted or rejected the change. Its
    transactional id then stays busy until the log has.
    """

    def __init__(self, registry: TransactionalIdRegistry, value_version: int, completer: Completer) -> None:
        self._registry = registry
        self._value_version = value_version
        self._completer = completer

    def write(self, transactional_id: TransactionalId, new: TransactionMetadata) -> Deferred[ErrorCode]:
        """Change a transactional id to *new*. Fires with NONE or the error for the client, and never fails."""
        shard = transactional_id.shard
        if not shard.is_active:
            return succeed(ErrorCode.NOT_COORDINATOR)
        transactional_id.pending = new.state
        record = transaction_record(transactional_id.name, new, self._value_version)
        written = shard.writer.write([record], lambda outcome: self._on_outcome(transactional_id, new, outcome))
        return written.addCallback(lambda code: code if code or shard.is_active else ErrorCode.NOT_COORDINATOR)

    def _on_outcome(self, transactional_id: TransactionalId, new: TransactionMetadata, outcome: ErrorCode) -> None:
        if not transactional_id.shard.is_active:
            return
        if not outcome:
            self._registry.change(transactional_id, new)
            if new.state in COMPLETION:
                self._completer.begin_completion(transactional_id)
            else:
                transactional_id.settle()
        elif transactional_id.current.state in COMPLETION:
            self._completer.retry_completion(transactional_id)
        elif transactional_id.current.producer_epoch == NO_EPOCH:
            self._registry.forget(transactional_id)  # No client has received its producer id.
        else:
            transactional_id.settle()
