"""The verdict leaves out what cannot be judged after a loss, and nothing else."""

from __future__ import annotations

import pytest

from kafkacompat.history.events import (
    READ_COMMITTED,
    Commit,
    End,
    Event,
    Fetched,
    Finished,
    HistoryPartition,
    Positioned,
    Read,
)
from tests.simulation.settings import COPIES
from tests.simulation.verdict import GROUP_TOPIC, TRANSACTION_TOPIC, judge

PLACE = HistoryPartition("orders", 0)


def make_history(fetched: int) -> list[Event]:
    """Return a history in which a copier commits offset 5 in a transaction, and the last reader fetches an offset."""
    return [
        Commit(1, "copier.0", 0, "copiers", PLACE, 5, transaction=0),
        End(2, "copier.0", 0, commit=True),
        Finished(3, "last.0", READ_COMMITTED, PLACE, 0, 0),
        Fetched(5, "last.0", "copiers", PLACE, fetched, asked_ns=4),
    ]


@pytest.mark.parametrize("lossy", [f"{COPIES}-0", f"{TRANSACTION_TOPIC}-1", f"{GROUP_TOPIC}-0", str(PLACE)])
@pytest.mark.parametrize("fetched", [5, 7])
def test_offsets_are_judged_only_if_their_commits_are(lossy: str, fetched: int) -> None:
    assert judge(make_history(fetched), {lossy}) == []


@pytest.mark.parametrize("lossy", [[], ["payments-0"], ["orders-1"]])
def test_an_offset_ahead_is_found_beside_losses_elsewhere(lossy: list[str]) -> None:
    assert judge(make_history(5), lossy) == []
    [sentence] = judge(make_history(7), lossy)
    assert sentence.startswith("offset ahead")


def test_copiers_need_no_offsets_when_their_copies_are_lost() -> None:
    other = HistoryPartition("orders", 1)
    history: list[Event] = [
        *make_history(5),
        # The second copier has committed nothing for the partition whose offset it fetches.
        Fetched(1, "copier.1", "copiers", other, -1, asked_ns=1),
        Positioned(1, "copier.1", PLACE, 0),
        Read(2, "copier.1", READ_COMMITTED, PLACE, []),
    ]
    assert judge(history, {f"{COPIES}-0"}) == []
