"""Scripts about groups of the consumer protocol (KIP-848), heartbeat by heartbeat.

Which of several members gets which partition is for each broker to choose, so of those only how many are noted.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compat_tests.same_answers.groups import ask_offsets, make_commit_request, wait_for_coordinator
from compat_tests.same_answers.transcript import Transcript
from compat_tests.waiting import until
from kafkacompat.wire.apis.consumer_group_describe import ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse
from kafkacompat.wire.apis.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from kafkacompat.wire.apis.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from kafkacompat.wire.apis.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from kafkacompat.wire.apis.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from kafkacompat.wire.apis.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from kafkacompat.wire.apis.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from kafkacompat.wire.apis.list_groups import ListGroupsRequest, ListGroupsResponse
from kafkacompat.wire.apis.offset_commit import OffsetCommitResponse
from kafkacompat.wire.apis.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchResponse

GROUP = 32


def make_heartbeat(group: str, member_id: str, epoch: int, **more: Any) -> ConsumerGroupHeartbeatRequest:
    request = ConsumerGroupHeartbeatRequest(group_id=group, member_id=member_id, member_epoch=epoch)
    for field, value in more.items():
        setattr(request, field, value)
    return request


def make_joining_heartbeat(group: str, member_id: str, *topics: str, **more: Any) -> ConsumerGroupHeartbeatRequest:
    fields = {"rebalance_timeout_ms": 60_000, "subscribed_topic_names": list(topics), "topic_partitions": []}
    return make_heartbeat(group, member_id, 0, **fields | more)


def make_owned(partitions: Mapping[bytes, list[int]]) -> list[TopicPartitions]:
    return [TopicPartitions(topic_id=topic_id, partitions=some) for topic_id, some in partitions.items()]


class Group:
    """A consumer group (KIP-848), and the responses that its members get."""

    def __init__(self, script: Transcript, name: str) -> None:
        self.script = script
        self.name = name
        self.topic_names: dict[bytes, str] = {}
        wait_for_coordinator(script, name)
        self.set("consumer.assignment.interval.ms", "0")

    def set(self, config: str, value: str) -> None:
        change = AlterableConfig(name=config, config_operation=0, value=value)
        resource = AlterConfigsResource(resource_type=GROUP, resource_name=self.name, configs=[change])
        request = IncrementalAlterConfigsRequest(resources=[resource])
        answer = self.script.client.call(request, IncrementalAlterConfigsResponse, 1)
        assert not answer.responses[0].error_code, answer
        self.script.settle()

    def topic(self, name: str, partitions: int) -> bytes:
        topic_id = self.script.create_topic(name, partitions)
        self.script.settle()
        self.topic_names[topic_id] = name.removeprefix(self.name)
        return topic_id

    def send(self, request: ConsumerGroupHeartbeatRequest, version: int = 1) -> ConsumerGroupHeartbeatResponse:
        return self.script.client.call(request, ConsumerGroupHeartbeatResponse, version)

    def ask(
        self, label: str, request: ConsumerGroupHeartbeatRequest, version: int = 1
    ) -> ConsumerGroupHeartbeatResponse:
        """Send a heartbeat; note the response with the number of partitions of each topic."""
        answer = self.send(request, version)
        self.script.note(label, [*self.head(answer), self.counts(answer)])
        return answer

    def ask_until_it_changes(self, label: str, request: ConsumerGroupHeartbeatRequest) -> None:
        """Repeat a heartbeat until the broker has noticed the change of the topics."""
        answers: list[ConsumerGroupHeartbeatResponse] = []

        def has_changed() -> bool:
            answers.append(self.send(request))
            return answers[-1].assignment is not None

        until(has_changed)
        self.script.note(label, [*self.head(answers[-1]), self.counts(answers[-1])])

    def head(self, answer: ConsumerGroupHeartbeatResponse) -> list[Any]:
        words = bool(answer.error_message)
        return [answer.error_code, words, answer.member_id, answer.member_epoch, answer.heartbeat_interval_ms]

    def counts(self, answer: ConsumerGroupHeartbeatResponse) -> Any:
        if answer.assignment is None:
            return None
        return sorted(
            [self.topic_names[part.topic_id], len(part.partitions)] for part in answer.assignment.topic_partitions
        )

    def has(self, answer: ConsumerGroupHeartbeatResponse) -> list[TopicPartitions]:
        """Return the partitions that a member reports after this response."""
        assert answer.assignment is not None
        return answer.assignment.topic_partitions

    def describe(self, label: str, version: int = 1) -> None:
        """Note the description of the group, its members in order and without their partitions."""
        request = ConsumerGroupDescribeRequest(group_ids=[self.name])
        group = self.script.client.call(request, ConsumerGroupDescribeResponse, version).groups[0]
        head = [group.error_code, group.group_state, group.group_epoch, group.assignment_epoch, group.assignor_name]
        members = [
            [
                member.instance_id,
                member.rack_id,
                member.member_epoch,
                member.client_id,
                member.client_host,
                sorted(name.removeprefix(self.name) for name in member.subscribed_topic_names),
                member.subscribed_topic_regex,
                sum(len(part.partitions) for part in member.assignment.topic_partitions),
                sum(len(part.partitions) for part in member.target_assignment.topic_partitions),
                member.member_type,
            ]
            for member in sorted(group.members, key=lambda member: (-member.member_type, member.member_id))
        ]
        self.script.note(f"{label} v{version}", [*head, members])


def bad_heartbeats(script: Transcript, name: str) -> None:
    group = Group(script, name)
    group.topic(name, 2)
    for label, request in {
        "no id": make_joining_heartbeat(name, "", name),
        "blank id": make_joining_heartbeat(name, " ", name),
        "no group": make_joining_heartbeat("", "m", name),
        "blank group": make_joining_heartbeat(" ", "m", name),
        "blank instance": make_joining_heartbeat(name, "m", name, instance_id=""),
        "blank rack": make_joining_heartbeat(name, "m", name, rack_id=" "),
        "no timeout": make_joining_heartbeat(name, "m", name, rebalance_timeout_ms=-1),
        "no partitions": make_joining_heartbeat(name, "m", name, topic_partitions=None),
        "partitions": make_joining_heartbeat(name, "m", name, topic_partitions=make_owned({bytes(16): [1]})),
        "no subscription": make_joining_heartbeat(name, "m", subscribed_topic_names=None),
        "no such assignor": make_joining_heartbeat(name, "m", name, server_assignor="mine"),
        "empty assignor": make_joining_heartbeat(name, "m", name, server_assignor=""),
        "static without instance": make_heartbeat(name, "m", -2),
        "epoch -3": make_heartbeat(name, "m", -3),
        "no id with an epoch": make_heartbeat(name, "", 3),
        "no id leaves": make_heartbeat(name, "", -1),
        "stays in no group": make_heartbeat(name + "-absent", "m", 1),
        "leaves no group": make_heartbeat(name + "-absent", "m", -1),
        "leaves no group for a while": make_heartbeat(name + "-absent", "m", -2, instance_id="i"),
        "no pattern": make_joining_heartbeat(
            name + "-p", "m", subscribed_topic_names=None, subscribed_topic_regex="a(b"
        ),
        "look ahead": make_joining_heartbeat(
            name + "-p", "m", subscribed_topic_names=None, subscribed_topic_regex="(?=a)"
        ),
        "twice repeated": make_joining_heartbeat(
            name + "-p", "m", subscribed_topic_names=None, subscribed_topic_regex="a**"
        ),
        "too often": make_joining_heartbeat(
            name + "-p", "m", subscribed_topic_names=None, subscribed_topic_regex="a{1001}"
        ),
        "reference": make_joining_heartbeat(
            name + "-p", "m", subscribed_topic_names=None, subscribed_topic_regex=r"(a)\1"
        ),
    }.items():
        for version in (0, 1):
            if version == 1 or not label.startswith(("no id", "no pattern", "look", "twice", "too", "reference")):
                script.ask(label, request, ConsumerGroupHeartbeatResponse, version)


def one_member(script: Transcript, name: str) -> None:
    group = Group(script, name)
    first, second = group.topic(name, 2), group.topic(name + "-other", 1)
    everything = {first: [0, 1]}
    group.ask("joins", make_joining_heartbeat(name, "m", name))
    group.describe("joined")
    group.ask("nothing new", make_heartbeat(name, "m", 2))
    group.ask("has it", make_heartbeat(name, "m", 2, topic_partitions=make_owned(everything)))
    full = {
        "rebalance_timeout_ms": 60_000,
        "subscribed_topic_names": [name],
        "topic_partitions": make_owned(everything),
    }
    group.ask("says everything", make_heartbeat(name, "m", 2, **full))
    group.ask("says nearly everything", make_heartbeat(name, "m", 2, **full | {"rebalance_timeout_ms": -1}))
    group.ask("epoch too large", make_heartbeat(name, "m", 3))
    group.ask("epoch too small", make_heartbeat(name, "m", 1))
    group.ask("unknown", make_heartbeat(name, "n", 2))
    group.ask("unknown leaves", make_heartbeat(name, "n", -1))
    group.ask(
        "wants more", make_heartbeat(name, "m", 2, subscribed_topic_names=[name, name + "-other", name + "-absent"])
    )
    group.describe("has more")
    group.ask("epoch before, silent", make_heartbeat(name, "m", 2))
    group.ask("epoch before", make_heartbeat(name, "m", 2, topic_partitions=make_owned(everything)))
    group.ask("epoch before, too much", make_heartbeat(name, "m", 2, topic_partitions=make_owned({first: [0, 7]})))
    group.ask("wants less", make_heartbeat(name, "m", 3, subscribed_topic_names=[name]))
    group.describe("is to give up")
    group.ask(
        "has not given up", make_heartbeat(name, "m", 3, topic_partitions=make_owned({**everything, second: [0]}))
    )
    group.ask("says nothing of it", make_heartbeat(name, "m", 3))
    group.ask("has given up", make_heartbeat(name, "m", 3, topic_partitions=make_owned(everything)))
    group.describe("has given up")
    group.ask("wants nothing", make_heartbeat(name, "m", 4, subscribed_topic_names=[], topic_partitions=[]))
    group.describe("wants nothing")
    group.ask("joins anew", make_joining_heartbeat(name, "m", name, server_assignor="range", rack_id="r"))
    group.describe("joined anew")
    script.ask("delete", DeleteGroupsRequest(groups_names=[name]), DeleteGroupsResponse, 2)
    group.ask("leaves", make_heartbeat(name, "m", -1))
    group.describe("empty")
    group.ask("leaves again", make_heartbeat(name, "m", -1))
    group.ask("stays in the empty group", make_heartbeat(name, "m", 5))
    group.ask("joins the empty group", make_joining_heartbeat(name, "m2", name))
    group.ask("leaves it", make_heartbeat(name, "m2", -1))
    script.ask("delete empty", DeleteGroupsRequest(groups_names=[name]), DeleteGroupsResponse, 2)
    group.describe("deleted")
    given = group.send(make_joining_heartbeat(name, "", name), 0)
    script.note("is given an id", [given.error_code, len(given.member_id or ""), given.member_epoch])


def lonely_without_topics(script: Transcript, name: str) -> None:
    group = Group(script, name)
    group.ask("joins", make_joining_heartbeat(name, "m"))
    group.describe("joined")
    group.ask("joins with absent topics", make_joining_heartbeat(name, "n", name + "-absent"))
    group.describe("both")
    group.ask(
        "empty pattern", make_joining_heartbeat(name, "o", subscribed_topic_names=None, subscribed_topic_regex="")
    )
    group.describe("three")


def two_members(script: Transcript, name: str) -> None:
    group = Group(script, name)
    group.topic(name, 4)
    first = group.ask("first joins", make_joining_heartbeat(name, "a", name))
    had = group.has(first)
    group.ask("second joins", make_joining_heartbeat(name, "b", name))
    group.describe("second waits")
    group.ask("second waits", make_heartbeat(name, "b", 3, topic_partitions=[]))
    less = group.ask("first learns", make_heartbeat(name, "a", 2))
    group.describe("first is to give up")
    group.ask("first is asked again", make_heartbeat(name, "a", 2))
    group.ask("second waits still", make_heartbeat(name, "b", 3))
    group.ask("first has not", make_heartbeat(name, "a", 2, topic_partitions=had))
    group.ask("first has", make_heartbeat(name, "a", 2, topic_partitions=group.has(less)))
    group.describe("first has")
    group.ask("second gets it", make_heartbeat(name, "b", 3))
    group.describe("second has it")
    group.ask("third joins", make_joining_heartbeat(name, "c", name))
    less = group.ask("first learns again", make_heartbeat(name, "a", 3))
    group.ask("second learns", make_heartbeat(name, "b", 3))
    group.describe("three")
    group.ask("second leaves", make_heartbeat(name, "b", -1))
    group.describe("second has left")
    group.ask("third learns of it", make_heartbeat(name, "c", 4))
    group.ask(
        "first learns of it",
        make_heartbeat(name, "a", 3, topic_partitions=group.has(less) if less.assignment else None),
    )
    group.describe("settled")


def votes_for_assignors(script: Transcript, name: str) -> None:
    group = Group(script, name)
    group.topic(name, 4)
    group.ask("one for range", make_joining_heartbeat(name, "a", name, server_assignor="range"))
    group.ask("two for uniform", make_joining_heartbeat(name, "b", name, server_assignor="uniform"))
    group.ask("three for uniform", make_joining_heartbeat(name, "c", name, server_assignor="uniform"))
    group.describe("three")


def static_consumers(script: Transcript, name: str) -> None:
    group = Group(script, name)
    group.topic(name, 2)
    here = {"instance_id": "here"}
    group.ask("joins", make_joining_heartbeat(name, "a", name, **here))
    group.ask("in the way", make_joining_heartbeat(name, "b", name, **here))
    group.ask("goes for a while", make_heartbeat(name, "a", -2, **here))
    group.describe("away")
    group.ask("comes back", make_joining_heartbeat(name, "b", name, **here))
    group.describe("back")
    group.ask("old one stays", make_heartbeat(name, "a", 2, **here))
    group.ask("old one leaves", make_heartbeat(name, "a", -1, **here))
    group.ask("old one leaves for a while", make_heartbeat(name, "a", -2, **here))
    group.ask("new one without its instance", make_heartbeat(name, "b", 2))
    group.ask("unknown instance", make_heartbeat(name, "b", 2, instance_id="there"))
    group.ask("unknown instance leaves", make_heartbeat(name, "b", -2, instance_id="there"))
    group.ask("goes with another subscription", make_heartbeat(name, "b", -2, **here))
    group.ask("comes back with it", make_joining_heartbeat(name, "c", name + "-absent", **here))
    group.describe("with another subscription")
    group.ask("leaves for good", make_heartbeat(name, "c", -1, **here))
    group.describe("gone")
    group.ask("comes after all", make_joining_heartbeat(name, "d", name, **here))


def patterns(script: Transcript, name: str) -> None:
    group = Group(script, name)
    group.topic(name, 2)
    group.topic(name + "-more", 1)
    pattern = {"subscribed_topic_names": None, "subscribed_topic_regex": f"{name}(-m.*)?"}
    # Kafka assigns the topics with the second heartbeat only.
    group.send(make_joining_heartbeat(name, "a", **pattern))
    until(
        lambda: (
            group.send(make_heartbeat(name, "a", 1)).error_code
            or group.send(make_heartbeat(name, "a", 2)).error_code == 0
        )
    )
    everything = make_heartbeat(name, "a", 2, rebalance_timeout_ms=1000, topic_partitions=[], **pattern)
    group.ask("has it all", everything)
    group.describe("found")
    group.ask("second joins", make_joining_heartbeat(name, "b", **pattern))
    group.describe("two")
    group.ask("gives it up", make_heartbeat(name, "a", 2, subscribed_topic_regex="", topic_partitions=[]))
    group.describe("names only")


def topics_that_change(script: Transcript, name: str) -> None:
    group = Group(script, name)
    group.topic(name, 2)
    group.ask("joins", make_joining_heartbeat(name, "m", name, name + "-later"))
    group.topic(name + "-later", 1)
    group.ask_until_it_changes("a topic more", make_heartbeat(name, "m", 2))
    more = CreatePartitionsTopic(name=name, count=3, assignments=None)
    script.client.call(CreatePartitionsRequest(topics=[more], timeout_ms=10_000), CreatePartitionsResponse, 3)
    group.ask_until_it_changes("a partition more", make_heartbeat(name, "m", 3))
    script.client.call(DeleteTopicsRequest(topic_names=[name + "-later"], timeout_ms=10_000), DeleteTopicsResponse, 5)
    group.ask_until_it_changes("a topic less", make_heartbeat(name, "m", 4))
    group.describe("a topic less")
    group.ask("has given it up", make_heartbeat(name, "m", 4, topic_partitions=[]))
    group.describe("settled")


def group_configs(script: Transcript, name: str) -> None:
    group = Group(script, name)
    group.topic(name, 2)
    group.set("consumer.heartbeat.interval.ms", "7000")
    group.ask("joins", make_joining_heartbeat(name, "m", name))
    group.set("consumer.heartbeat.interval.ms", "6000")
    group.ask("stays", make_heartbeat(name, "m", 2))


def offsets_of_members(script: Transcript, name: str) -> None:
    group = Group(script, name)
    topic_id = group.topic(name, 2)
    group.ask("joins", make_joining_heartbeat(name, "m", name))
    for version in (8, 9, 10):
        known = topic_id if version == 10 else bytes(16)
        for label, member, epoch in (
            ("as a member", "m", 2),
            ("epoch too small", "m", 1),
            ("epoch too large", "m", 3),
            ("as nobody", "n", 2),
            ("without an epoch", "", -1),
            ("without a member", "", 2),
        ):
            request = make_commit_request(name, name, 5, known, member_id=member, generation_id_or_member_epoch=epoch)
            script.ask(f"commit {label}", request, OffsetCommitResponse, version)
            wanted = OffsetFetchRequestGroup(group_id=name, member_id=member or None, member_epoch=epoch, topics=None)
            fetching = OffsetFetchRequest(group_id=name, topics=None, groups=[wanted])
            script.ask(f"fetch {label}", fetching, OffsetFetchResponse, version)
        ask_offsets(script, "some", name, name, known, version)
    group.ask("leaves", make_heartbeat(name, "m", -1))
    script.ask("commit to nobody", make_commit_request(name, name, 6), OffsetCommitResponse, 9)
    ask_offsets(script, "at last", name, name, bytes(16), 9)


def an_old_epoch(script: Transcript, name: str) -> None:
    """A commit with the previous epoch is accepted for partitions of that epoch (KIP-1251)."""
    group = Group(script, name)
    group.topic(name, 1)
    group.topic(name + "-other", 1)
    group.ask("joins", make_joining_heartbeat(name, "m", name))
    group.ask("wants more", make_heartbeat(name, "m", 2, subscribed_topic_names=[name, name + "-other"]))
    for epoch in (1, 2, 3, 4):
        for topic in (name, name + "-other"):
            request = make_commit_request(name, topic, epoch, member_id="m", generation_id_or_member_epoch=epoch)
            script.ask(f"{epoch} for {topic}", request, OffsetCommitResponse, 9)


def descriptions_of_both(script: Transcript, name: str) -> None:
    group = Group(script, name)
    group.topic(name, 1)
    group.ask("joins", make_joining_heartbeat(name, "m", name))
    classic = name + "-classic"
    script.ask("commit", make_commit_request(classic, name, 1), OffsetCommitResponse, 9)
    for label, groups in {
        "consumer": [name],
        "classic": [classic],
        "unknown": [name + "-absent"],
        "no name": [""],
        "twice": [name, classic, name + "-absent"],
        "none": [],
    }.items():
        for allowed in (False, True):
            for version in (0, 1):
                request = ConsumerGroupDescribeRequest(group_ids=groups, include_authorized_operations=allowed)
                script.ask(f"{label}, {allowed}", request, ConsumerGroupDescribeResponse, version)
    for version in (0, 5, 6):
        script.ask("as classic", DescribeGroupsRequest(groups=[name]), DescribeGroupsResponse, version)
    for version, filters in (
        (3, {}),
        (4, {"states_filter": ["stable"]}),
        (5, {}),
        (5, {"types_filter": ["consumer"]}),
        (5, {"types_filter": ["classic"]}),
        (5, {"states_filter": ["Empty"], "types_filter": ["Consumer", "classic"]}),
        (5, {"states_filter": ["Assigning", "Reconciling"]}),
    ):
        all_groups = script.client.call(ListGroupsRequest(**filters), ListGroupsResponse, version).groups
        mine = sorted(
            (listed_group for listed_group in all_groups if name in listed_group.group_id),
            key=lambda listed_group: listed_group.group_id,
        )
        script.note(f"list {version} {filters}", mine)


SCRIPTS = (
    bad_heartbeats,
    one_member,
    lonely_without_topics,
    two_members,
    votes_for_assignors,
    static_consumers,
    patterns,
    topics_that_change,
    group_configs,
    offsets_of_members,
    an_old_epoch,
    descriptions_of_both,
)
