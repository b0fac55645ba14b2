"""Scripts about transactions: producers with epochs, transactions in every state, and requests of administrators."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from compat_tests.same_answers.transcript import Transcript
from compat_tests.waiting import until
from kafkacompat.wire.apis.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from kafkacompat.wire.apis.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from kafkacompat.wire.apis.describe_transactions import DescribeTransactionsRequest, DescribeTransactionsResponse
from kafkacompat.wire.apis.end_txn import EndTxnRequest, EndTxnResponse
from kafkacompat.wire.apis.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from kafkacompat.wire.apis.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kafkacompat.wire.errors import ErrorCode

ProducerIdAndEpoch = tuple[int, int]
"""A producer id and its epoch."""

NOT_READY = (ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR)
PASSING = (*NOT_READY, ErrorCode.CONCURRENT_TRANSACTIONS)
OWN_EPOCHS = 5
"""The version of EndTxn from which on every transaction has an epoch of its own."""


def wait_for_coordinator(script: Transcript, name: str) -> None:
    """Ask until the broker has created and loaded its transactions topic, without a note."""

    def is_ready() -> bool:
        wanted = FindCoordinatorRequest(key=name, key_type=1)
        coordinator = script.client.call(wanted, FindCoordinatorResponse, 1)
        answer = script.client.call(make_init_request(f"{name}-ready"), InitProducerIdResponse, 4)
        return not coordinator.error_code and answer.error_code not in PASSING

    until(is_ready)


def make_init_request(
    name: str | None, producer: ProducerIdAndEpoch = (-1, -1), timeout_ms: int = 60_000
) -> InitProducerIdRequest:
    return InitProducerIdRequest(
        transactional_id=name, transaction_timeout_ms=timeout_ms, producer_id=producer[0], producer_epoch=producer[1]
    )


def a_producer(script: Transcript, name: str) -> ProducerIdAndEpoch:
    """Return a transactional id's next producer, without a note."""

    def asked() -> InitProducerIdResponse | None:
        answer = script.client.call(make_init_request(name), InitProducerIdResponse, 4)
        assert answer.error_code in (0, *PASSING), answer
        return None if answer.error_code else answer

    answer = until(asked)
    assert answer is not None
    return answer.producer_id, answer.producer_epoch


def group_topics(*partitions: tuple[str, int]) -> list[AddPartitionsToTxnTopic]:
    grouped: dict[str, list[int]] = {}
    for name, index in partitions:
        grouped.setdefault(name, []).append(index)
    return [AddPartitionsToTxnTopic(name=name, partitions=indexes) for name, indexes in grouped.items()]


def make_add_request(
    name: str, producer: ProducerIdAndEpoch, *partitions: tuple[str, int]
) -> AddPartitionsToTxnRequest:
    return AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=name,
        v3_and_below_producer_id=producer[0],
        v3_and_below_producer_epoch=producer[1],
        v3_and_below_topics=group_topics(*partitions),
    )


def make_transaction(
    name: str, producer: ProducerIdAndEpoch, *partitions: tuple[str, int], verify_only: bool = False
) -> AddPartitionsToTxnTransaction:
    return AddPartitionsToTxnTransaction(
        transactional_id=name,
        producer_id=producer[0],
        producer_epoch=producer[1],
        verify_only=verify_only,
        topics=group_topics(*partitions),
    )


def make_end_request(name: str, producer: ProducerIdAndEpoch, committed: bool = True) -> EndTxnRequest:
    return EndTxnRequest(
        transactional_id=name, producer_id=producer[0], producer_epoch=producer[1], committed=committed
    )


def make_describe_request(*names: str) -> DescribeTransactionsRequest:
    return DescribeTransactionsRequest(transactional_ids=list(names))


def await_end(script: Transcript, name: str) -> str:
    """Wait until a transaction is not being ended any more, which Kafka answers before it does it; its state."""

    def state() -> str:
        (described,) = script.client.call(
            make_describe_request(name), DescribeTransactionsResponse, 0
        ).transaction_states
        return "" if described.transaction_state.startswith("Prepare") else described.transaction_state or "none"

    return until(state)


def note_state(script: Transcript, label: str, name: str) -> None:
    await_end(script, name)
    answer = script.client.call(make_describe_request(name), DescribeTransactionsResponse, 0)
    for topic in answer.transaction_states[0].topics:
        topic.partitions.sort()  # Kafka lists them in no order.
    script.note(f"{label}: described", answer)


STATES: dict[str, Callable[[Transcript, str, str, ProducerIdAndEpoch], None]] = {
    "Empty": lambda script, name, topic, producer: None,
    "Ongoing": lambda script, name, topic, producer: add_partition(script, name, topic, producer),
    "CompleteCommit": lambda script, name, topic, producer: end_transaction(script, name, topic, producer, True),
    "CompleteAbort": lambda script, name, topic, producer: end_transaction(script, name, topic, producer, False),
}


def add_partition(script: Transcript, name: str, topic: str, producer: ProducerIdAndEpoch) -> None:
    script.client.call(make_add_request(name, producer, (topic, 0)), AddPartitionsToTxnResponse, 3)


def end_transaction(script: Transcript, name: str, topic: str, producer: ProducerIdAndEpoch, committed: bool) -> None:
    add_partition(script, name, topic, producer)
    answer = script.client.call(make_end_request(name, producer, committed), EndTxnResponse, 4)
    assert answer.error_code == 0, answer
    await_end(script, name)


# The scripts


def coordinators(script: Transcript, name: str) -> None:
    wait_for_coordinator(script, name)
    for version in range(1, 7):
        keys = [name, ""] if version >= 4 else []
        asked = FindCoordinatorRequest(key=name, key_type=1, coordinator_keys=keys)
        script.ask("find", asked, FindCoordinatorResponse, version)


def producer_ids(script: Transcript, name: str) -> None:
    wait_for_coordinator(script, name)
    for version in range(6):
        for label, request in {
            "new": make_init_request(f"{name}-{version}"),
            "again": make_init_request(f"{name}-{version}"),
            "no name": make_init_request(""),
            "no time": make_init_request(f"{name}-{version}", timeout_ms=0),
            "too much time": make_init_request(f"{name}-{version}", timeout_ms=900_001),
            "much time": make_init_request(f"{name}-{version}", timeout_ms=900_000),
            "described": make_describe_request(f"{name}-{version}"),
            "the longest name": make_init_request((f"{name}-{version}" + "x" * 32767)[:32767]),
            "a longer name": make_init_request("x" * 32768 if version >= 2 else ""),
        }.items():
            if isinstance(request, InitProducerIdRequest):
                script.ask(f"{label}", request, InitProducerIdResponse, version)
            else:
                script.ask(f"{label} {version}", request, DescribeTransactionsResponse, 0)


def producers_that_say_who_they_are(script: Transcript, name: str) -> None:
    wait_for_coordinator(script, name)
    for version in (3, 4, 5):
        mine = f"{name}-{version}"
        producer_id, epoch = a_producer(script, mine)
        for label, producer in {
            "first": (producer_id, epoch),
            "repeated": (producer_id, epoch),
            "next": (producer_id, epoch + 1),
            "old": (producer_id, epoch),
            "future": (producer_id, epoch + 9),
            "somebody else": (producer_id + 100_000, 0),
            "no epoch": (producer_id, -1),
            "no id": (-1, epoch),
            "end of epochs": (producer_id, 32766),
        }.items():
            script.ask(label, make_init_request(mine, producer), InitProducerIdResponse, version)
        unknown = make_init_request(f"{mine}-unknown", (producer_id, epoch))
        script.ask("unknown id", unknown, InitProducerIdResponse, version)


def transactions_of_old(script: Transcript, name: str) -> None:
    """From the first partition to the end, without an epoch for each."""
    wait_for_coordinator(script, name)
    script.create_topic(name, 2)
    for version in range(5):
        for committed in (True, False):
            mine, label = f"{name}-{version}-{committed}", f"commit {committed}"
            producer = a_producer(script, mine)
            offsets = AddOffsetsToTxnRequest(
                transactional_id=mine, producer_id=producer[0], producer_epoch=producer[1], group_id=name
            )
            for _ in range(2):
                script.ask(
                    f"{label} {version} first {_}",
                    make_add_request(mine, producer, (name, 0)),
                    AddPartitionsToTxnResponse,
                    min(version, 3),
                )
            script.ask(
                f"{label} {version} second",
                make_add_request(mine, producer, (name, 0), (name, 1)),
                AddPartitionsToTxnResponse,
                min(version, 3),
            )
            script.ask(f"{label} offsets", offsets, AddOffsetsToTxnResponse, version)
            script.ask(f"{label} end", make_end_request(mine, producer, committed), EndTxnResponse, version)
            note_state(script, f"{label} {version}", mine)
            script.ask(f"{label} end again", make_end_request(mine, producer, committed), EndTxnResponse, version)
            script.ask(
                f"{label} end otherwise", make_end_request(mine, producer, not committed), EndTxnResponse, version
            )
            script.ask(
                f"{label} {version} next",
                make_add_request(mine, producer, (name, 1)),
                AddPartitionsToTxnResponse,
                min(version, 3),
            )
            note_state(script, f"{label} {version} next", mine)
            script.ask(f"{label} next end", make_end_request(mine, producer, committed), EndTxnResponse, version)


def transactions_with_own_epochs(script: Transcript, name: str) -> None:
    wait_for_coordinator(script, name)
    script.create_topic(name, 1)
    for committed in (True, False):
        mine, label = f"{name}-{committed}", f"commit {committed}"
        producer = a_producer(script, mine)
        step = partial(_own_epochs_step, script, mine)
        step(f"{label} of nothing", make_end_request(mine, producer, committed))
        producer = a_producer(script, mine)
        request = AddPartitionsToTxnRequest(transactions=[make_transaction(mine, producer, (name, 0))])
        script.ask(f"{label} add", request, AddPartitionsToTxnResponse, 5)
        step(f"{label} end", make_end_request(mine, producer, committed))
        for otherwise in (committed, not committed):
            step(f"{label} repeated {otherwise}", make_end_request(mine, producer, otherwise))
        following = (producer[0], producer[1] + 1)
        step(f"{label} abort of nothing", make_end_request(mine, following, False))
        step(f"{label} abort of nothing repeated", make_end_request(mine, following, False))
        step(f"{label} commit of nothing", make_end_request(mine, (producer[0], producer[1] + 2), True))
        step(f"{label} old epoch", make_end_request(mine, producer, committed))
        note_state(script, f"{label} at last", mine)


def _own_epochs_step(script: Transcript, name: str, label: str, request: EndTxnRequest) -> None:
    script.ask(label, request, EndTxnResponse, OWN_EPOCHS)
    await_end(script, name)


SCRIPTS = (
    coordinators,
    producer_ids,
    producers_that_say_who_they_are,
    transactions_of_old,
    transactions_with_own_epochs,
)
