"""The life of a transactional id, as tables.

Rule 1. A transactional id is in one of eight states. *Empty*: it has a producer id and no transaction yet. *Ongoing*:
a transaction has partitions. *PrepareCommit*, *PrepareAbort*: how it ends is decided and durable, the partitions are
being told. *CompleteCommit*, *CompleteAbort*: all of them know. *Dead*: forgotten. *PrepareEpochFence* is never
stored: Kafka passes through it where a transaction is aborted to fence its producer.

Rule 2. The state follows the log: a change counts once its record is there, and `PREDECESSORS` says from where a state
may be reached. A change that it does not name is a programming error.

Rule 3. One change at a time: while one is on its way to the log, and from a Prepare state until the Complete state that
follows, every request that would change something is answered CONCURRENT_TRANSACTIONS.

Rule 4. What EndTxn does in the other states is in `ON_END`. A client of transaction version 2 (KIP-890) has a new epoch
from every EndTxn on; asking again with the old one is a repeat.
"""

from __future__ import annotations

from enum import Enum, IntEnum, auto

EPOCH_BUMP_VERSION = 2
"""From this transaction version on each transaction of a producer has an epoch of its own."""


class TransactionState(IntEnum):
    """A state; the number stands in the log."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7


EMPTY = TransactionState.EMPTY
ONGOING = TransactionState.ONGOING
PREPARE_COMMIT = TransactionState.PREPARE_COMMIT
PREPARE_ABORT = TransactionState.PREPARE_ABORT
COMPLETE_COMMIT = TransactionState.COMPLETE_COMMIT
COMPLETE_ABORT = TransactionState.COMPLETE_ABORT
DEAD = TransactionState.DEAD
PREPARE_EPOCH_FENCE = TransactionState.PREPARE_EPOCH_FENCE

NAMES: dict[TransactionState, str] = {
    EMPTY: "Empty",
    ONGOING: "Ongoing",
    PREPARE_COMMIT: "PrepareCommit",
    PREPARE_ABORT: "PrepareAbort",
    COMPLETE_COMMIT: "CompleteCommit",
    COMPLETE_ABORT: "CompleteAbort",
    DEAD: "Dead",
    PREPARE_EPOCH_FENCE: "PrepareEpochFence",
}
"""What clients are told."""

BETWEEN_TRANSACTIONS = frozenset({EMPTY, COMPLETE_COMMIT, COMPLETE_ABORT})
"""Nothing is open: a transaction may begin, and an id that is not used is forgotten after a while."""

PREDECESSORS: dict[TransactionState, frozenset[TransactionState]] = {
    EMPTY: BETWEEN_TRANSACTIONS,
    ONGOING: BETWEEN_TRANSACTIONS | {ONGOING},
    PREPARE_COMMIT: frozenset({ONGOING}),
    PREPARE_ABORT: BETWEEN_TRANSACTIONS | {ONGOING, PREPARE_EPOCH_FENCE},
    COMPLETE_COMMIT: frozenset({PREPARE_COMMIT}),
    COMPLETE_ABORT: frozenset({PREPARE_ABORT}),
    DEAD: BETWEEN_TRANSACTIONS,
    PREPARE_EPOCH_FENCE: frozenset({ONGOING}),
}

COMPLETION: dict[TransactionState, TransactionState] = {
    PREPARE_COMMIT: COMPLETE_COMMIT,
    PREPARE_ABORT: COMPLETE_ABORT,
}
"""What a decided transaction becomes once every partition has its marker."""


class OnEnd(Enum):
    """What an EndTxn does."""

    PREPARE = auto()  # the transaction ends
    ANSWER = auto()  # it has ended so already
    REFUSE = auto()  # INVALID_TXN_STATE


class Ending(Enum):
    """How a client wants its transaction to end."""

    COMMIT = PREPARE_COMMIT
    ABORT = PREPARE_ABORT


_COMMIT, _ABORT = Ending.COMMIT, Ending.ABORT

# By (does every transaction have its own epoch?, state): (what is asked for, is it a repeat?) -> what happens.
# Before there were such epochs nothing shows a repeat. One in Empty or Ongoing is fenced already.
ON_END: dict[tuple[bool, TransactionState], dict[tuple[Ending, bool], OnEnd]] = {
    (False, EMPTY): {(_COMMIT, False): OnEnd.REFUSE, (_ABORT, False): OnEnd.REFUSE},
    (False, ONGOING): {(_COMMIT, False): OnEnd.PREPARE, (_ABORT, False): OnEnd.PREPARE},
    (False, COMPLETE_COMMIT): {(_COMMIT, False): OnEnd.ANSWER, (_ABORT, False): OnEnd.REFUSE},
    (False, COMPLETE_ABORT): {(_COMMIT, False): OnEnd.REFUSE, (_ABORT, False): OnEnd.ANSWER},
    # The client may not know whether it has begun a transaction, so it may always abort.
    (True, EMPTY): {(_COMMIT, False): OnEnd.REFUSE, (_ABORT, False): OnEnd.PREPARE},
    (True, ONGOING): {(_COMMIT, False): OnEnd.PREPARE, (_ABORT, False): OnEnd.PREPARE},
    (True, COMPLETE_COMMIT): {
        (_COMMIT, True): OnEnd.ANSWER,
        (_COMMIT, False): OnEnd.REFUSE,
        (_ABORT, True): OnEnd.REFUSE,
        (_ABORT, False): OnEnd.PREPARE,
    },
    (True, COMPLETE_ABORT): {
        (_COMMIT, True): OnEnd.REFUSE,
        (_COMMIT, False): OnEnd.REFUSE,
        (_ABORT, True): OnEnd.ANSWER,
        (_ABORT, False): OnEnd.PREPARE,
    },
}


def check_transition(old: TransactionState, new: TransactionState) -> None:
    """Raise ValueError where *new* may not follow *old*."""
    if old not in PREDECESSORS[new]:
        raise ValueError(f"a transaction in state {NAMES[old]} cannot become {NAMES[new]}")
