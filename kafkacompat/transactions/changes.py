"""Writing what becomes of a transactional id: a change counts once its record is in the log."""

from __future__ import annotations

from typing import Protocol

from twisted.internet.defer import Deferred, succeed

from kafkacompat.transactions.records import transaction_record
from kafkacompat.transactions.registry import TransactionalId, TransactionalIdRegistry
from kafkacompat.transactions.state import COMPLETION
from kafkacompat.transactions.transaction import NO_EPOCH, Transaction
from kafkacompat.wire.errors import ErrorCode


class Completer(Protocol):
    """Who sees to it that decided transactions are completed."""

    def begin(self, transactional_id: TransactionalId) -> None:
        """From now on it is decided how the transaction ends."""
        ...

    def refused(self, transactional_id: TransactionalId) -> None:
        """Every partition knows, but the log did not take that it is so."""
        ...


class Changes:
    """Writes changes to the log, one at a time for each transactional id.

    A client that is answered before the log has decided (request.timeout.ms) finds its transactional id busy
    until then.
    """

    def __init__(self, registry: TransactionalIdRegistry, value_version: int, completer: Completer) -> None:
        self._registry = registry
        self._value_version = value_version
        self._completer = completer

    def write(self, transactional_id: TransactionalId, new: Transaction) -> Deferred[ErrorCode]:
        """Let *new* become of a transactional id; fires with NONE or the error for the client, and never fails."""
        shard = transactional_id.shard
        if not shard.is_active:
            return succeed(ErrorCode.NOT_COORDINATOR)
        transactional_id.pending = new.state
        record = transaction_record(transactional_id.name, new, self._value_version)
        written = shard.writer.write([record], lambda outcome: self._decided(transactional_id, new, outcome))
        return written.addCallback(lambda code: code if code or shard.is_active else ErrorCode.NOT_COORDINATOR)

    def _decided(self, transactional_id: TransactionalId, new: Transaction, outcome: ErrorCode) -> None:
        if not transactional_id.shard.is_active:
            return
        if not outcome:
            self._registry.change(transactional_id, new)
            if new.state in COMPLETION:
                self._completer.begin(transactional_id)
            else:
                transactional_id.settle()
        elif transactional_id.current.state in COMPLETION:
            self._completer.refused(transactional_id)
        elif transactional_id.current.producer_epoch == NO_EPOCH:
            self._registry.forget(transactional_id)  # Nobody was told of it.
        else:
            transactional_id.settle()
