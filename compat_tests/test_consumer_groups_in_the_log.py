"""Consumer groups in the log: Kafka's groups continue here, and ours in Kafka."""

from __future__ import annotations

import shutil
from contextlib import closing
from pathlib import Path

import pytest

from compat_tests.brokers import Broker, KafkaBroker, KafkacompatBroker
from compat_tests.dumps import kafkas_dump, kafkas_records, list_complaints, our_fields, our_rows
from compat_tests.raw_client import RawClient
from compat_tests.same_answers.consumer_groups import Group, make_heartbeat, make_joining_heartbeat
from compat_tests.same_answers.groups import make_commit_request
from compat_tests.same_answers.migrating_groups import classic_join
from compat_tests.same_answers.transcript import Transcript
from compat_tests.waiting import until
from kafkacompat.wire.apis.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
)
from kafkacompat.wire.apis.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse
from kafkacompat.wire.apis.join_group import JoinGroupResponse
from kafkacompat.wire.apis.offset_commit import OffsetCommitResponse
from kafkacompat.wire.apis.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchResponse
from kafkacompat.wire.errors import ErrorCode

COMMITTED = 7


def fill_group(broker: Broker, name: str) -> DescribedGroup:
    """Make a group with a member to give up, two that wait, by names, a pattern and the classic protocol, and one away."""
    with closing(Transcript(broker.port)) as script:
        group = Group(script, name)
        group.topic(name, 4)
        group.topic(f"{name}-other", 1)
        assert group.send(make_joining_heartbeat(name, "a", name)).member_epoch == 2
        assert group.send(make_joining_heartbeat(name, "static", f"{name}-other", instance_id="here")).member_epoch == 3
        gone = make_joining_heartbeat(name, "gone", name, subscribed_topic_regex=f"{name}-.*")
        assert group.send(gone).member_epoch == 4
        assert group.send(make_heartbeat(name, "gone", -1)).error_code == 0
        assert (
            group.send(make_joining_heartbeat(name, "b", name, subscribed_topic_regex=f"{name}-oth.*")).error_code == 0
        )
        # Kafka looks the topics of the pattern up a little later, and has one epoch more for them.
        least = 7 if isinstance(broker, KafkaBroker) else 6
        until(lambda: describe_group(broker, name).group_epoch >= least)
        assert group.send(make_heartbeat(name, "a", 2)).assignment is not None
        assert group.send(make_heartbeat(name, "static", -2, instance_id="here")).error_code == 0
        assert not script.client.call(classic_join(name, name), JoinGroupResponse, 3).error_code
        request = make_commit_request(name, name, COMMITTED, member_id="a", generation_id_or_member_epoch=2)
        assert not script.client.call(request, OffsetCommitResponse, 9).topics[0].partitions[0].error_code
        return describe_group(broker, name)


def describe_group(broker: Broker, name: str) -> DescribedGroup:
    """A group with everything in order."""
    with RawClient(broker.port) as client:
        request = ConsumerGroupDescribeRequest(group_ids=[name])
        group = client.call(request, ConsumerGroupDescribeResponse, 1).groups[0]
    group.members.sort(key=lambda member: member.member_id)
    for member in group.members:
        member.subscribed_topic_names.sort()
        for assignment in (member.assignment, member.target_assignment):
            assignment.topic_partitions.sort(key=lambda part: part.topic_id)
            for part in assignment.topic_partitions:
                part.partitions.sort()
    return group


def read_committed(broker: Broker, name: str) -> int:
    with RawClient(broker.port) as client:
        request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=name, topics=None)])
        group = client.call(request, OffsetFetchResponse, 8).groups[0]
        return group.topics[0].partitions[0].committed_offset if group.topics else -1


def goes_on(broker: Broker, name: str, left: DescribedGroup) -> None:
    """The members of a group that another broker was left with go on unnoticed."""
    until(lambda: describe_group(broker, name).error_code == ErrorCode.NONE)
    assert describe_group(broker, name) == left
    assert read_committed(broker, name) == COMMITTED
    epochs = {member.member_id: member.member_epoch for member in left.members}

    def send(request: object) -> ConsumerGroupHeartbeatResponse:
        with RawClient(broker.port) as client:
            return client.call(request, ConsumerGroupHeartbeatResponse, 1)  # type: ignore[arg-type]

    given_up = send(make_heartbeat(name, "a", epochs["a"], topic_partitions=[]))
    assert (given_up.error_code, given_up.member_epoch > epochs["a"]) == (0, True)
    assert send(make_heartbeat(name, "b", epochs["b"])).error_code == 0
    assert send(make_heartbeat(name, "gone", 4)).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    back = send(make_joining_heartbeat(name, "back", f"{name}-other", instance_id="here"))
    assert (back.error_code, back.assignment is not None) == (0, True)


@pytest.mark.migration
def test_groups_go_from_kafka_to_ours_and_back(tmp_path: Path) -> None:
    kafka, ours = KafkaBroker(tmp_path / "kafka"), KafkacompatBroker(tmp_path / "ours")
    with kafka:
        left = fill_group(kafka, "kafkas")
    ours.prepare()
    shutil.copytree(kafka.data_folder, ours.data_folder)
    with ours:
        goes_on(ours, "kafkas", left)
        left = fill_group(ours, "ours")
    shutil.rmtree(kafka.data_folder)
    shutil.copytree(ours.data_folder, kafka.data_folder)
    files = sorted(kafka.data_folder.glob("__consumer_offsets-*/*.log"))
    output, errors = kafkas_dump(files, "--offsets-decoder")
    assert list_complaints(errors) == []
    rows = [row for path in files for row in our_rows(path, "--offsets-decoder")]
    kafkas = [(record.get("offset"), record.get("key"), record.get("payload")) for record in kafkas_records(output)]
    assert [
        (record.get("offset"), record.get("key"), record.get("payload")) for record in our_fields(rows, "record")
    ] == kafkas
    with kafka:
        # Kafka does not know topics that were created here, so it describes none of their partitions.
        until(lambda: describe_group(kafka, "ours").error_code == ErrorCode.NONE)
        group = describe_group(kafka, "ours")
        assert (group.group_epoch, group.assignment_epoch) == (left.group_epoch, left.assignment_epoch)
        assert [member.member_epoch for member in group.members] == [member.member_epoch for member in left.members]
        assert read_committed(kafka, "ours") == COMMITTED
        assert {"a", "b", "back"} < {member.member_id for member in describe_group(kafka, "kafkas").members}
