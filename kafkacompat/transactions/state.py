"""The states of a transactional id, as tables.

Rule 1. A transactional id is in one of eight states. *Empty*: it has a producer id and no transaction yet. *Ongoing*: a transaction
has partitions. *PrepareCommit*, *PrepareAbort*: the log has the decision how the transaction ends, and the partitions are getting
their markers. *CompleteCommit*, *CompleteAbort*: all partitions have their markers. *Dead*: the id is forgotten.
*PrepareEpochFence* is never stored; Kafka passes through it when it aborts a transaction to fence its producer.

Rule 2. The state follows the log: a change applies once its record is in the log. `PREDECESSORS` names the states that may precede
a state. Any other change is a programming error.

Rule 3. There is one change at a time. While a change is under way, and from a Prepare state until the Complete state, every
request for another change gets CONCURRENT_TRANSACTIONS.

Rule 4. `ON_END` says what EndTxn does in the other states. For a client of transaction version 2 (KIP-890) every EndTxn brings a
new epoch. An EndTxn with the previous epoch is a repeat.
"""

from __future__ import annotations

from enum import Enum, IntEnum, auto

EPOCH_BUMP_VERSION = 2
"""From this transaction version on, each transaction of a producer has its own epoch."""


class TransactionState(IntEnum):
    """A state; the log has its number."""

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
"""The names that clients receive."""

BETWEEN_TRANSACTIONS = frozenset({EMPTY, COMPLETE_COMMIT, COMPLETE_ABORT})
"""States without an open transaction: a transaction may begin, and the id may expire."""

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
"""The state of a decided transaction once every partition has its marker."""


class EndEffect(Enum):
    """The effect of an EndTxn."""

    PREPARE = auto()  # decide how the transaction ends
    ANSWER = auto()  # it has already ended that way
    REFUSE = auto()  # INVALID_TXN_STATE


class Ending(Enum):
    """How a client wants its transaction to end."""

    COMMIT = PREPARE_COMMIT
    ABORT = PREPARE_ABORT


_COMMIT, _ABORT = Ending.COMMIT, Ending.ABORT

# By (does every transaction have its own epoch?, state): (requested ending, is it a repeat?) -> effect.
# Without such epochs nothing shows a repeat. A repeat in Empty or Ongoing is fenced.
ON_END: dict[tuple[bool, TransactionState], dict[tuple[Ending, bool], EndEffect]] = {
    (False, EMPTY): {(_COMMIT, False): EndEffect.REFUSE, (_ABORT, False): EndEffect.REFUSE},
    (False, ONGOING): {(_COMMIT, False): EndEffect.PREPARE, (_ABORT, False): EndEffect.PREPARE},
    (False, COMPLETE_COMMIT): {(_COMMIT, False): EndEffect.ANSWER, (_ABORT, False): EndEffect.REFUSE},
    (False, COMPLETE_ABORT): {(_COMMIT, False): EndEffect.REFUSE, (_ABORT, False): EndEffect.ANSWER},
    # The client may not know whether its transaction began, so it may always abort.
    (True, EMPTY): {(_COMMIT, False): EndEffect.REFUSE, (_ABORT, False): EndEffect.PREPARE},
    (True, ONGOING): {(_COMMIT, False): EndEffect.PREPARE, (_ABORT, False): EndEffect.PREPARE},
    (True, COMPLETE_COMMIT): {
        (_COMMIT, True): EndEffect.ANSWER,
        (_COMMIT, False): EndEffect.REFUSE,
        (_ABORT, True): EndEffect.REFUSE,
        (_ABORT, False): EndEffect.PREPARE,
    },
    (True, COMPLETE_ABORT): {
        (_COMMIT, True): EndEffect.REFUSE,
        (_COMMIT, False): EndEffect.REFUSE,
        (_ABORT, True): EndEffect.ANSWER,
        (_ABORT, False): EndEffect.PREPARE,
    },
}


def check_transition(old: TransactionState, new: TransactionState) -> None:
    """Raise ValueError if *new* may not follow *old*."""
    if old not in PREDECESSORS[new]:
        raise ValueError(f"a transaction in state {NAMES[old]} cannot become {NAMES[new]}")
