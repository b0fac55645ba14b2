"""Scripts about offsets committed in transactions: permitted members, visible offsets, and fetches that wait."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import count
from typing import Any

from compat_tests.same_answers.consumer_groups import Group, make_heartbeat, make_joining_heartbeat
from compat_tests.same_answers.groups import (
    a_stable_member,
    make_commit_request,
    make_join_request,
    make_sync_request,
    wait_for_coordinator,
)
from compat_tests.same_answers.transactions import (
    OWN_EPOCHS,
    ProducerIdAndEpoch,
    a_producer,
    await_end,
    make_add_request,
    make_end_request,
    make_init_request,
    note_state,
)
from compat_tests.same_answers.transactions import wait_for_coordinator as wait_for_transactions
from compat_tests.same_answers.transcript import Transcript
from compat_tests.waiting import until
from kafkacompat.wire.apis.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from kafkacompat.wire.apis.add_partitions_to_txn import AddPartitionsToTxnResponse
from kafkacompat.wire.apis.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from kafkacompat.wire.apis.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from kafkacompat.wire.apis.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from kafkacompat.wire.apis.end_txn import EndTxnResponse
from kafkacompat.wire.apis.init_producer_id import InitProducerIdResponse
from kafkacompat.wire.apis.join_group import JoinGroupResponse
from kafkacompat.wire.apis.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from kafkacompat.wire.apis.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from kafkacompat.wire.apis.offset_commit import OffsetCommitResponse
from kafkacompat.wire.apis.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)
from kafkacompat.wire.apis.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)
from kafkacompat.wire.apis.sync_group import SyncGroupResponse
from kafkacompat.wire.apis.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)
from kafkacompat.wire.apis.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from kafkacompat.wire.java_hash import partition_for_key

VERSIONS = range(6)
ADDING = 5
"""The version from which on the offsets partition comes to be part of the transaction by itself."""
MEMBERS = 3
OFFSETS_TOPIC = "__consumer_offsets"


def make_txn_commit_request(
    name: str, producer: ProducerIdAndEpoch, group: str, topic: str, *offsets: tuple[int, int], **more: Any
) -> TxnOffsetCommitRequest:
    """A commit of (partition, offset)s."""
    partitions = [
        TxnOffsetCommitRequestPartition(
            partition_index=index, committed_offset=offset, committed_leader_epoch=0, committed_metadata="note"
        )
        for index, offset in offsets
    ]
    request = TxnOffsetCommitRequest(
        transactional_id=name,
        group_id=group,
        producer_id=producer[0],
        producer_epoch=producer[1],
        topics=[TxnOffsetCommitRequestTopic(name=topic, partitions=partitions)],
    )
    for field, value in more.items():
        setattr(request, field, value)
    return request


def wait_for_both(script: Transcript, name: str) -> None:
    wait_for_coordinator(script, name)
    wait_for_transactions(script, name)


def add_offsets(script: Transcript, name: str, producer: ProducerIdAndEpoch, group: str) -> None:
    """Add the group's partition to the transaction without a note."""
    request = AddOffsetsToTxnRequest(
        transactional_id=name, producer_id=producer[0], producer_epoch=producer[1], group_id=group
    )
    answer = script.client.call(request, AddOffsetsToTxnResponse, 3)
    assert answer.error_code == 0, answer


def begin_transaction(
    script: Transcript, name: str, group: str, topic: str, *offsets: tuple[int, int]
) -> ProducerIdAndEpoch:
    """Return a producer whose open transaction commits these offsets, without a note."""
    producer = a_producer(script, name)
    add_offsets(script, name, producer, group)
    answer = script.client.call(
        make_txn_commit_request(name, producer, group, topic, *offsets), TxnOffsetCommitResponse, MEMBERS
    )
    assert not any(part.error_code for part in answer.topics[0].partitions), answer
    return producer


def end_transaction(
    script: Transcript, name: str, producer: ProducerIdAndEpoch, committed: bool = True, version: int = 3
) -> None:
    """End a transaction, and wait until all partitions have its end, without a note."""
    answer = script.client.call(make_end_request(name, producer, committed), EndTxnResponse, version)
    assert answer.error_code == 0, answer
    await_end(script, name)


def note_offsets(
    script: Transcript, label: str, group: str, topic: str, version: int = 9, topic_id: bytes = bytes(16)
) -> None:
    """Note the group's offsets, stable or not, of three partitions and of all partitions."""
    for stable in (True, False):
        for everything in (True, False):
            old = None if everything else [OffsetFetchRequestTopic(name=topic, partition_indexes=[0, 1, 2])]
            new = OffsetFetchRequestTopics(name=topic, topic_id=topic_id, partition_indexes=[0, 1, 2])
            wanted_group = OffsetFetchRequestGroup(group_id=group, topics=None if everything else [new])
            request = OffsetFetchRequest(group_id=group, topics=old, groups=[wanted_group], require_stable=stable)
            answer = script.client.call(request, OffsetFetchResponse, version)
            for response_topic in answer.groups[0].topics if version >= 8 else answer.topics:
                response_topic.partitions.sort(key=lambda partition: partition.partition_index)
            script.note(
                f"{label}: {'stable' if stable else 'any'} {'all' if everything else 'some'} v{version}", answer
            )


def commits_in_transactions(script: Transcript, name: str) -> None:
    """From the first commit to the end, in every version."""
    topic_id = script.create_topic(name, 2)
    wait_for_both(script, name)
    for version in VERSIONS:
        for committed in (True, False):
            mine = f"{name}-{version}-{committed}"
            producer = a_producer(script, mine)
            if version < ADDING:
                add_offsets(script, mine, producer, mine)
            for number in range(2):
                request = make_txn_commit_request(mine, producer, mine, name, (0, 10 + number), (1, 20 + number))
                script.ask(f"{committed} {number}", request, TxnOffsetCommitResponse, version)
            note_state(script, f"{committed} {version} open", mine)
            described = DescribeGroupsRequest(groups=[mine])
            script.ask(f"{committed} {version} open", described, DescribeGroupsResponse, 5)
            for fetch_version in (7, 8, 9, 10):
                note_offsets(script, f"{committed} {version} open", mine, name, fetch_version, topic_id)
            end_transaction(script, mine, producer, committed, OWN_EPOCHS if version >= ADDING else 3)
            note_offsets(script, f"{committed} {version} ended", mine, name)
            script.ask(f"{committed} {version} ended", described, DescribeGroupsResponse, 5)


# States


def _reach_ongoing(script: Transcript, name: str, group: str, producer: ProducerIdAndEpoch) -> None:
    answer = script.client.call(make_add_request(name, producer, (group, 0)), AddPartitionsToTxnResponse, 3)
    assert not answer.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code


def _reach_added(script: Transcript, name: str, group: str, producer: ProducerIdAndEpoch) -> None:
    add_offsets(script, name, producer, group)


def _reach_written(script: Transcript, name: str, group: str, producer: ProducerIdAndEpoch) -> None:
    add_offsets(script, name, producer, group)
    script.client.call(make_txn_commit_request(name, producer, group, group, (0, 3)), TxnOffsetCommitResponse, MEMBERS)


def _reach_committed(script: Transcript, name: str, group: str, producer: ProducerIdAndEpoch) -> None:
    _reach_written(script, name, group, producer)
    end_transaction(script, name, producer)


def _reach_aborted(script: Transcript, name: str, group: str, producer: ProducerIdAndEpoch) -> None:
    _reach_written(script, name, group, producer)
    end_transaction(script, name, producer, False)


STATES: dict[str, Callable[[Transcript, str, str, ProducerIdAndEpoch], None]] = {
    "Empty": lambda script, name, group, producer: None,
    "Ongoing": _reach_ongoing,
    "added": _reach_added,
    "written": _reach_written,
    "CompleteCommit": _reach_committed,
    "CompleteAbort": _reach_aborted,
}


def commits_in_every_state(script: Transcript, name: str) -> None:
    """Send a commit in each state with the right producer, older and newer epochs, another producer id and another transactional id."""
    script.create_topic(name, 2)
    wait_for_both(script, name)
    numbers = count()
    for state, reach in STATES.items():
        for version in (0, MEMBERS, 4, ADDING):
            for kind in ("right", "older", "newer", "another id", "another name", "no name", "no id"):
                mine = f"{name}-{next(numbers)}"
                a_producer(script, mine)
                producer = a_producer(script, mine)
                reach(script, mine, name, producer)
                given = {
                    "older": (producer[0], producer[1] - 1),
                    "newer": (producer[0], producer[1] + 1),
                    "another id": (producer[0] + 500_000, producer[1]),
                    "no id": (-1, -1),
                }.get(kind, producer)
                called = {"another name": f"{mine}-unknown", "no name": ""}.get(kind, mine)
                label = f"{state}: {kind}"
                script.ask(
                    label, make_txn_commit_request(called, given, name, name, (1, 7)), TxnOffsetCommitResponse, version
                )
                if kind == "right":
                    note_state(script, f"{label} {version}", mine)


def odd_commits_in_transactions(script: Transcript, name: str) -> None:
    script.create_topic(name, 2)
    wait_for_both(script, name)
    for version in VERSIONS:
        mine = f"{name}-{version}"
        producer = a_producer(script, mine)
        add_offsets(script, mine, producer, mine)
        long_note = make_txn_commit_request(mine, producer, mine, name, (0, 1), (1, 2))
        long_note.topics[0].partitions[0].committed_metadata = "x" * 5000
        no_note = make_txn_commit_request(mine, producer, mine, name, (0, 1))
        no_note.topics[0].partitions[0].committed_metadata = None
        for label, request in {
            "no group": make_txn_commit_request(mine, producer, "", name, (0, 1)),
            "unknown topic": make_txn_commit_request(mine, producer, mine, f"{name}-absent", (0, 1)),
            "unknown partition": make_txn_commit_request(mine, producer, mine, name, (2, 1), (0, 1)),
            "negative partition": make_txn_commit_request(mine, producer, mine, name, (-1, 1)),
            "negative offset": make_txn_commit_request(mine, producer, mine, name, (0, -5)),
            "nothing": make_txn_commit_request(mine, producer, mine, name),
            "no topics": make_txn_commit_request(mine, producer, mine, name, topics=[]),
            "twice": make_txn_commit_request(mine, producer, mine, name, (0, 5), (0, 6)),
            "long metadata": long_note,
            "no metadata": no_note,
        }.items():
            script.ask(label, request, TxnOffsetCommitResponse, version)
        note_offsets(script, f"{version} open", mine, name)
        end_transaction(script, mine, producer)
        note_offsets(script, f"{version} committed", mine, name)


# Members


def commits_of_classic_members(script: Transcript, name: str) -> None:
    """In every state of a classic group."""
    script.create_topic(name, 2)
    wait_for_both(script, name)
    member, generation = a_stable_member(script, name)
    _ask_as_members(script, "stable", name, member, generation)
    newcomer = script.client.call(make_join_request(name), JoinGroupResponse, 4)
    waiting = Transcript(script.port)
    waiting.client.send(make_join_request(name, newcomer.member_id), 4)
    _ask_as_members(script, "preparing", name, member, generation)
    rejoined = script.client.call(make_join_request(name, member), JoinGroupResponse, 3)
    _ask_as_members(script, "completing", name, member, rejoined.generation_id)
    waiting.close()
    everybody = [MemberIdentity(member_id=member_id) for member_id in (member, newcomer.member_id)]
    script.client.call(LeaveGroupRequest(group_id=name, members=everybody), LeaveGroupResponse, 3)
    _ask_as_members(script, "empty", name, member, rejoined.generation_id)
    _ask_as_members(script, "unknown", f"{name}-absent", member, generation, topic=name)


def _ask_as_members(
    script: Transcript,
    state: str,
    group: str,
    member: str,
    generation: int,
    topic: str | None = None,
    instance: str = "i",
) -> None:
    kinds: dict[str, dict[str, Any]] = {
        "nobody": {},
        "generation -2": {"generation_id": -2},
        "the member": {"member_id": member, "generation_id": generation},
        "the member without": {"member_id": member},
        "older": {"member_id": member, "generation_id": generation - 1},
        "newer": {"member_id": member, "generation_id": generation + 1},
        "a stranger": {"member_id": "stranger", "generation_id": generation},
        "a generation": {"generation_id": generation},
        "an instance": {"group_instance_id": instance},
        "by instance": {"member_id": member, "generation_id": generation, "group_instance_id": instance},
        "another by instance": {"member_id": "other", "generation_id": generation, "group_instance_id": instance},
    }
    for version in (2, MEMBERS, 4, ADDING):
        name = f"{group}-{state}-{version}"
        producer = a_producer(script, name)
        add_offsets(script, name, producer, group)
        for label, fields in kinds.items() if version >= MEMBERS else [("nobody", {})]:
            request = make_txn_commit_request(name, producer, group, topic or group, (0, version), **fields)
            script.ask(f"{state}: {label}", request, TxnOffsetCommitResponse, version)
        end_transaction(script, name, producer, False)


def commits_of_static_members(script: Transcript, name: str) -> None:
    script.create_topic(name, 2)
    wait_for_both(script, name)
    joined = script.client.call(make_join_request(name, group_instance_id="i"), JoinGroupResponse, 5)
    synced = make_sync_request(name, joined.generation_id, joined.member_id, group_instance_id="i")
    script.client.call(synced, SyncGroupResponse, 5)
    _ask_as_members(script, "static", name, joined.member_id, joined.generation_id)
    again = script.client.call(make_join_request(name, group_instance_id="i"), JoinGroupResponse, 5)
    _ask_as_members(script, "replaced", name, joined.member_id, again.generation_id)
    _ask_as_members(script, "replacing", name, again.member_id, again.generation_id)


def commits_of_consumers(script: Transcript, name: str) -> None:
    """In a group of the consumer protocol, where an epoch stands for a generation."""
    group = Group(script, name)
    wait_for_transactions(script, name)
    group.topic(name, 1)
    group.topic(f"{name}-other", 1)
    group.ask("joins", make_joining_heartbeat(name, "m", name))
    _ask_as_members(script, "consumer", name, "m", 2)
    group.ask("wants more", make_heartbeat(name, "m", 2, subscribed_topic_names=[name, f"{name}-other"]))
    for epoch in (1, 2, 3, 4):
        for topic in (name, f"{name}-other"):
            mine = f"{topic}-{epoch}"
            producer = a_producer(script, mine)
            add_offsets(script, mine, producer, name)
            request = make_txn_commit_request(
                mine, producer, name, topic, (0, epoch), member_id="m", generation_id=epoch
            )
            script.ask(f"{epoch} for {topic}", request, TxnOffsetCommitResponse, MEMBERS)
            end_transaction(script, mine, producer, False)
    group.ask("leaves", make_heartbeat(name, "m", -1))
    _ask_as_members(script, "empty consumer", name, "m", 4)


# Other events


def commits_of_both_kinds(script: Transcript, name: str) -> None:
    """Of commits in transactions and others the last written counts, whenever the transaction ends."""
    script.create_topic(name, 3)
    wait_for_both(script, name)
    plain = make_commit_request(name, name, 1)
    script.ask("plain", plain, OffsetCommitResponse, 9)
    first = begin_transaction(script, f"{name}-a", name, name, (0, 2), (1, 2))
    note_offsets(script, "first open", name, name)
    second = begin_transaction(script, f"{name}-b", name, name, (0, 3), (1, 3), (2, 3))
    script.ask("plain behind", make_commit_request(name, name, 4), OffsetCommitResponse, 9)
    note_offsets(script, "both open", name, name)
    end_transaction(script, f"{name}-b", second)
    note_offsets(script, "second committed", name, name)
    end_transaction(script, f"{name}-a", first)
    note_offsets(script, "both committed", name, name)
    aborted = begin_transaction(script, f"{name}-a", name, name, (2, 9))
    note_offsets(script, "third open", name, name)
    end_transaction(script, f"{name}-a", aborted, False)
    note_offsets(script, "third aborted", name, name)


def _has_no_offsets(script: Transcript, topic: str) -> bool:
    """Return whether the deleted topic's offsets are gone from its group: Kafka removes them after its response."""
    wanted = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=topic, topics=None)], require_stable=True)
    answer = script.client.call(wanted, OffsetFetchResponse, 9)
    return topic not in {response_topic.name for response_topic in answer.groups[0].topics}


def deleting_what_is_pending(script: Transcript, name: str) -> None:
    script.create_topic(name, 3)
    wait_for_both(script, name)
    for kind in ("group", "offset", "topic"):
        group, topic = f"{name}-{kind}", f"{name}-{kind}"
        script.create_topic(topic, 3)
        script.client.call(make_commit_request(group, topic, 1), OffsetCommitResponse, 9)
        producer = begin_transaction(script, group, group, topic, (0, 5), (1, 5))
        add_offsets(script, group, producer, group)
        other = make_txn_commit_request(group, producer, group, name, (0, 6))
        script.client.call(other, TxnOffsetCommitResponse, MEMBERS)
        if kind == "group":
            script.ask("delete group", DeleteGroupsRequest(groups_names=[group]), DeleteGroupsResponse, 2)
            script.ask("deleted", DescribeGroupsRequest(groups=[group]), DescribeGroupsResponse, 5)
        elif kind == "offset":
            partitions = [OffsetDeleteRequestPartition(partition_index=index) for index in (0, 1, 2)]
            wanted = OffsetDeleteRequestTopic(name=topic, partitions=partitions)
            script.ask("delete", OffsetDeleteRequest(group_id=group, topics=[wanted]), OffsetDeleteResponse, 0)
        else:
            script.client.call(DeleteTopicsRequest(topic_names=[topic], timeout_ms=30_000), DeleteTopicsResponse, 4)
            until(partial(_has_no_offsets, script, topic))
        note_offsets(script, f"{kind} deleted", group, topic)
        note_offsets(script, f"{kind} deleted, others", group, name)
        end_transaction(script, group, producer)
        note_offsets(script, f"{kind} committed", group, topic)
        note_offsets(script, f"{kind} committed, others", group, name)


def fencing_who_commits(script: Transcript, name: str) -> None:
    """A new producer aborts the offsets of the previous transaction, and only it may commit from then on."""
    script.create_topic(name, 3)
    wait_for_both(script, name)
    for version in VERSIONS:
        mine = f"{name}-{version}"
        producer = begin_transaction(script, mine, mine, name, (0, 5))
        script.client.call(make_init_request(mine), InitProducerIdResponse, 4)
        await_end(script, mine)
        note_offsets(script, f"{version} fenced", mine, name)
        script.ask("old", make_txn_commit_request(mine, producer, mine, name, (0, 6)), TxnOffsetCommitResponse, version)
        new = a_producer(script, mine)
        add_offsets(script, mine, new, mine)
        script.ask("new", make_txn_commit_request(mine, new, mine, name, (0, 7)), TxnOffsetCommitResponse, version)
        script.ask(
            "old again", make_txn_commit_request(mine, producer, mine, name, (0, 8)), TxnOffsetCommitResponse, version
        )
        end_transaction(script, mine, new)
        note_offsets(script, f"{version} at last", mine, name)
        script.ask("behind", make_txn_commit_request(mine, new, mine, name, (0, 9)), TxnOffsetCommitResponse, version)
        script.client.call(make_init_request(mine), InitProducerIdResponse, 4)
        await_end(script, mine)


def markers_for_offsets(script: Transcript, name: str) -> None:
    """Markers of an administrator in the offsets topic, for a hanging transaction."""
    script.create_topic(name, 2)
    wait_for_both(script, name)
    wanted = MetadataRequest(topics=[MetadataRequestTopic(name=OFFSETS_TOPIC)])
    topic = script.client.call(wanted, MetadataResponse, 12).topics[0]
    partition = partition_for_key(name, len(topic.partitions))
    for committed in (False, True):
        mine = f"{name}-{committed}"
        producer = begin_transaction(script, mine, name, name, (0, 5))
        note_offsets(script, f"{committed} open", name, name)
        for label, epoch in (("older", producer[1] - 1), ("right", producer[1]), ("right again", producer[1])):
            marker = WritableTxnMarker(
                producer_id=producer[0],
                producer_epoch=epoch,
                transaction_result=committed,
                topics=[WritableTxnMarkerTopic(name=OFFSETS_TOPIC, partition_indexes=[partition])],
                coordinator_epoch=0,
            )
            answer = script.client.call(WriteTxnMarkersRequest(markers=[marker]), WriteTxnMarkersResponse, 1)
            answer.markers[0].topics[0].partitions[0].partition_index = 0
            script.note(f"{committed} {label}", answer)
            note_offsets(script, f"{committed} {label}", name, name)
        for version in (MEMBERS, ADDING):
            script.ask(
                f"{committed} behind",
                make_txn_commit_request(mine, producer, name, name, (0, 6)),
                TxnOffsetCommitResponse,
                version,
            )
        note_offsets(script, f"{committed} behind", name, name)
        end_transaction(script, mine, producer, False)
        note_offsets(script, f"{committed} ended", name, name)


SCRIPTS = (
    commits_in_transactions,
    commits_in_every_state,
    odd_commits_in_transactions,
    commits_of_classic_members,
    commits_of_static_members,
    commits_of_consumers,
    commits_of_both_kinds,
    deleting_what_is_pending,
    fencing_who_commits,
    markers_for_offsets,
)
