"""Scripts about transactions: every request in every state, their contents, and requests of administrators."""

from __future__ import annotations

from itertools import count

from compat_tests.same_answers.transactions import (
    STATES,
    ProducerIdAndEpoch,
    a_producer,
    add_partition,
    await_end,
    make_add_request,
    make_end_request,
    make_init_request,
    make_transaction,
    note_state,
    wait_for_coordinator,
)
from compat_tests.same_answers.transcript import Transcript
from kafkacompat.wire.apis.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from kafkacompat.wire.apis.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse
from kafkacompat.wire.apis.end_txn import EndTxnResponse
from kafkacompat.wire.apis.init_producer_id import InitProducerIdResponse
from kafkacompat.wire.apis.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from kafkacompat.wire.apis.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)


def every_request_in_every_state(script: Transcript, name: str) -> None:
    """Send each request with the right producer, an older and a newer epoch, another producer id and another transactional id."""
    wait_for_coordinator(script, name)
    script.create_topic(name, 2)
    numbers = count()
    for state, reach in STATES.items():
        for kind in ("right", "older", "newer", "another id", "another name"):
            for asked in (
                "add 1",
                "add 3",
                "offsets 1",
                "offsets 4",
                "commit 1",
                "commit 4",
                "commit 5",
                "abort 1",
                "abort 4",
                "abort 5",
                "verify 5",
                "init 5",
            ):
                mine = f"{name}-{next(numbers)}"
                a_producer(script, mine)
                producer = a_producer(script, mine)
                reach(script, mine, name, producer)
                assert await_end(script, mine) == state
                given = {
                    "right": producer,
                    "older": (producer[0], producer[1] - 1),
                    "newer": (producer[0], producer[1] + 1),
                    "another id": (producer[0] + 500_000, producer[1]),
                    "another name": producer,
                }[kind]
                label = f"{state}: {kind}: {asked}"
                _ask_transition(
                    script, label, asked, f"{mine}-unknown" if kind == "another name" else mine, name, given
                )
                note_state(script, label, mine)


def _ask_transition(
    script: Transcript, label: str, asked: str, name: str, topic: str, producer: ProducerIdAndEpoch
) -> None:
    word, version = asked.split()
    number = int(version)
    if word == "add":
        script.ask(label, make_add_request(name, producer, (topic, 1)), AddPartitionsToTxnResponse, number)
    elif word == "offsets":
        offsets = AddOffsetsToTxnRequest(
            transactional_id=name, producer_id=producer[0], producer_epoch=producer[1], group_id=topic
        )
        script.ask(label, offsets, AddOffsetsToTxnResponse, number)
    elif word == "verify":
        request = AddPartitionsToTxnRequest(
            transactions=[make_transaction(name, producer, (topic, 0), (topic, 1), verify_only=True)]
        )
        script.ask(label, request, AddPartitionsToTxnResponse, number)
    elif word == "init":
        script.ask(label, make_init_request(name, producer), InitProducerIdResponse, number)
    else:
        script.ask(label, make_end_request(name, producer, word == "commit"), EndTxnResponse, number)


def partitions_of_transactions(script: Transcript, name: str) -> None:
    wait_for_coordinator(script, name)
    script.create_topic(name, 2)
    producer = a_producer(script, name)
    for version in range(4):
        for label, partitions in {
            "none": [],
            "unknown topic": [(name, 0), (f"{name}-absent", 0)],
            "unknown partition": [(name, 0), (name, 2)],
            "negative": [(name, -1)],
            "internal": [(name, 0), ("__transaction_state", 0)],
            "no name": [("", 0)],
            "both": [(name, 0), (name, 1)],
        }.items():
            script.ask(label, make_add_request(name, producer, *partitions), AddPartitionsToTxnResponse, version)
        script.ask("no id", make_add_request("", producer, (name, 0)), AddPartitionsToTxnResponse, version)
    for version in (4, 5):
        second = a_producer(script, f"{name}-second")
        several = [
            make_transaction(name, producer, (name, 0), verify_only=True),
            make_transaction(f"{name}-second", second, (name, 0), (name, 1)),
            make_transaction(f"{name}-unknown", producer, (name, 0)),
            make_transaction(f"{name}-unknown-2", producer, (name, 0), verify_only=True),
            make_transaction("", producer, (name, 0)),
        ]
        script.ask("several", AddPartitionsToTxnRequest(transactions=several), AddPartitionsToTxnResponse, version)
        bad = [make_transaction(name, producer, (name, 0), ("absent", 7), verify_only=True)]
        script.ask("one is unknown", AddPartitionsToTxnRequest(transactions=bad), AddPartitionsToTxnResponse, version)
    note_state(script, "at last", name)


def fencing(script: Transcript, name: str) -> None:
    """A new producer ends an open transaction: the abort takes the next epoch, and the producer the epoch after it."""
    wait_for_coordinator(script, name)
    script.create_topic(name, 1)
    for version in (3, 4, 5):
        mine = f"{name}-{version}"
        producer = a_producer(script, mine)
        add_partition(script, mine, name, producer)
        script.ask("anew", make_init_request(mine), InitProducerIdResponse, version)
        note_state(script, f"anew {version}", mine)
        script.ask("once more", make_init_request(mine), InitProducerIdResponse, version)
        for end_version in (1, 4, 5):
            script.ask(f"old {version} end", make_end_request(mine, producer), EndTxnResponse, end_version)
        note_state(script, f"at last {version}", mine)


def administrators_of_transactions(script: Transcript, name: str) -> None:
    wait_for_coordinator(script, name)
    script.create_topic(name, 1)
    for state, reach in STATES.items():
        mine = f"{name}-{state}"
        reach(script, mine, name, a_producer(script, mine))
        note_state(script, state, mine)
    for label, filters in {
        "all": {},
        "empty": {"state_filters": ["Empty"]},
        "ended": {"state_filters": ["CompleteCommit", "CompleteAbort", "Frobnicated"]},
        "of nobody": {"producer_id_filters": [987_654_321]},
        "long open": {"state_filters": ["Ongoing"], "duration_filter": 600_000},
        "open": {"state_filters": ["Ongoing"], "duration_filter": 0},
    }.items():
        listed = ListTransactionsRequest(transactional_id_pattern=f"{name}-.*", **filters)  # type: ignore[arg-type]
        script.ask(f"list {label}", listed, ListTransactionsResponse, 2)
    for label, pattern in {
        "whole": f"{name}-E",
        "classes": f"{name}-[E-O]\\w+y?",
        "either": f"({name}-Empty|x)",
    }.items():
        listed = ListTransactionsRequest(transactional_id_pattern=pattern)
        script.ask(f"list {label}", listed, ListTransactionsResponse, 2)


def markers(script: Transcript, name: str) -> None:
    script.create_topic(name, 2)
    for version in (1, 2):
        for label, marker in {
            "abort": _make_marker(name, 70_000 + version, 0),
            "again": _make_marker(name, 70_000 + version, 0),
            "newer": _make_marker(name, 70_000 + version, 3, coordinator_epoch=2),
            "older epoch": _make_marker(name, 70_000 + version, 1, coordinator_epoch=2),
            "older coordinator": _make_marker(name, 70_000 + version, 3, coordinator_epoch=1),
            "unknown partition": _make_marker(name, 70_000 + version, 3, 0, 5),
            "unknown topic": _make_marker(f"{name}-absent", 70_000 + version, 3),
            "own epoch": _make_marker(
                name, 70_000 + version, 4, coordinator_epoch=2, transaction_version=2 * (version - 1)
            ),
            "own epoch again": _make_marker(
                name, 70_000 + version, 4, coordinator_epoch=2, transaction_version=2 * (version - 1)
            ),
            "nothing": WritableTxnMarker(producer_id=70_000 + version, producer_epoch=4, coordinator_epoch=2),
            "nobody": _make_marker(name, -1, 0),
            "no epoch": _make_marker(name, 75_000 + version, -1),
            "no coordinator": _make_marker(name, 75_000 + version, 0, coordinator_epoch=-2),
        }.items():
            _write_markers(script, f"{label} v{version}", version, marker)
        two = [_make_marker(name, 80_000, 0, 0), _make_marker(name, 80_000, 0, 1), _make_marker(name, 80_001, 0, 1)]
        _write_markers(script, f"several v{version}", version, *two)
        _write_markers(script, f"none v{version}", version)


def _write_markers(script: Transcript, label: str, version: int, *markers: WritableTxnMarker) -> None:
    answer = script.client.call(WriteTxnMarkersRequest(markers=list(markers)), WriteTxnMarkersResponse, version)
    answer.markers.sort(key=lambda marker: marker.producer_id)  # Kafka lists them in no order.
    for marker in answer.markers:
        for topic in marker.topics:
            topic.partitions.sort(key=lambda partition: partition.partition_index)
    script.note(label, answer)


def _make_marker(
    topic: str, producer_id: int, epoch: int, *partitions: int, coordinator_epoch: int = 1, transaction_version: int = 0
) -> WritableTxnMarker:
    return WritableTxnMarker(
        producer_id=producer_id,
        producer_epoch=epoch,
        transaction_result=False,
        topics=[WritableTxnMarkerTopic(name=topic, partition_indexes=list(partitions) or [0])],
        coordinator_epoch=coordinator_epoch,
        transaction_version=transaction_version,
    )


SCRIPTS = (
    every_request_in_every_state,
    partitions_of_transactions,
    fencing,
    administrators_of_transactions,
    markers,
)
