"""Scripts about administrators' requests to the cluster: elections, reassignments, the quorum, producers, transactions."""

from __future__ import annotations

from compat_tests import batches
from compat_tests.raw_client import produce_request
from compat_tests.same_answers.transactions import wait_for_coordinator as wait_for_transaction_coordinator
from compat_tests.same_answers.transcript import Transcript
from kafkacompat.wire.apis import (
    alter_partition_reassignments as reassign,
)
from kafkacompat.wire.apis.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse, Listener
from kafkacompat.wire.apis.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    TopicRequest,
)
from kafkacompat.wire.apis.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    PartitionData,
    TopicData,
)
from kafkacompat.wire.apis.describe_transactions import DescribeTransactionsRequest, DescribeTransactionsResponse
from kafkacompat.wire.apis.elect_leaders import ElectLeadersRequest, ElectLeadersResponse, TopicPartitions
from kafkacompat.wire.apis.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    ListPartitionReassignmentsTopics,
)
from kafkacompat.wire.apis.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from kafkacompat.wire.apis.produce import ProduceResponse
from kafkacompat.wire.apis.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse
from kafkacompat.wire.apis.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse

PREFERRED, UNCLEAN = 0, 1


def elections(script: Transcript, name: str) -> None:
    script.create_topic(name, 2)

    def elect(label: str, *wanted: tuple[str, list[int]], kind: int = PREFERRED, version: int = 2) -> None:
        named = [TopicPartitions(topic=topic, partitions=partitions) for topic, partitions in wanted]
        request = ElectLeadersRequest(election_type=kind, topic_partitions=named)
        script.ask(label, request, ElectLeadersResponse, version)

    for version in range(3):
        elect("preferred", (name, [0, 1]), version=version)
        elect("unknown", (name, [7]), (name + "-absent", [0]), version=version)
    elect("unclean", (name, [1]), kind=UNCLEAN)
    elect("unclean of unknown", (name + "-absent", [0]), kind=UNCLEAN)
    elect("strange kind", (name, [0]), kind=7)
    elect("twice", (name, [0, 0]))
    elect("topic twice", (name, [0]), (name, [1]))
    elect("none")
    elect("no partitions", (name, []))
    elect("negative", (name, [-1]))
    elect("strange kind of none", kind=7)
    for kind in (PREFERRED, UNCLEAN, 7):
        everything = ElectLeadersRequest(election_type=kind, topic_partitions=None)
        script.ask(f"all, kind {kind}", everything, ElectLeadersResponse, 2)


def reassignments(script: Transcript, name: str) -> None:
    script.create_topic(name, 2)

    def alter(
        label: str, *wanted: tuple[str, int, list[int] | None], version: int = 1, may_change: bool = True
    ) -> None:
        topics = [
            reassign.ReassignableTopic(
                name=topic, partitions=[reassign.ReassignablePartition(partition_index=index, replicas=replicas)]
            )
            for topic, index, replicas in wanted
        ]
        request = reassign.AlterPartitionReassignmentsRequest(topics=topics, allow_replication_factor_change=may_change)
        script.ask(label, request, reassign.AlterPartitionReassignmentsResponse, version)

    for version in range(2):
        alter("to ourselves", (name, 0, [1]), version=version)
        alter("cancel nothing", (name, 0, None), version=version)
        alter("to nobody", (name, 0, [2]), version=version)
    alter("empty", (name, 0, []))
    alter("twice the same", (name, 0, [1, 1]))
    alter("negative", (name, 0, [-1]))
    alter("more", (name, 0, [1, 2]))
    alter("more, which must not be", (name, 0, [1, 2]), may_change=False)
    alter("the same, which must not change", (name, 0, [1]), may_change=False)
    alter("unknown partition", (name, 7, [1]))
    alter("negative partition", (name, -1, [1]))
    alter("unknown topic", (name + "-absent", 0, [1]))
    alter("cancel unknown", (name + "-absent", 0, None))
    alter("unknown partition to nobody", (name, 7, [2]))
    alter("named twice", (name, 0, [1]), (name, 1, [1]))
    alter("nothing")
    double = reassign.ReassignableTopic(
        name=name,
        partitions=[reassign.ReassignablePartition(partition_index=0, replicas=[1]) for _ in range(2)],
    )
    request = reassign.AlterPartitionReassignmentsRequest(topics=[double])
    script.ask("partition twice", request, reassign.AlterPartitionReassignmentsResponse, 1)
    for label, listed in {
        "all": None,
        "none": [],
        "one": [ListPartitionReassignmentsTopics(name=name, partition_indexes=[0, 9])],
        "unknown": [ListPartitionReassignmentsTopics(name=name + "-absent", partition_indexes=[0])],
    }.items():
        asked = ListPartitionReassignmentsRequest(topics=listed)
        script.ask(f"list {label}", asked, ListPartitionReassignmentsResponse, 0)


def quorum(script: Transcript, name: str) -> None:
    def describe(label: str, *wanted: tuple[str, list[int]], version: int = 2) -> None:
        topics = [
            TopicData(topic_name=topic, partitions=[PartitionData(partition_index=index) for index in partitions])
            for topic, partitions in wanted
        ]
        script.ask(label, DescribeQuorumRequest(topics=topics), DescribeQuorumResponse, version)

    for version in range(3):
        describe("the quorum", ("__cluster_metadata", [0]), version=version)
        describe("partition 1", ("__cluster_metadata", [1]), version=version)
        describe("another topic", (name, [0]), version=version)
    describe("two partitions", ("__cluster_metadata", [0, 1]))
    describe("two topics", ("__cluster_metadata", [0]), (name, [0]))
    describe("none")
    for version in range(2):
        voter = AddRaftVoterRequest(
            cluster_id=None,
            timeout_ms=1000,
            voter_id=2,
            voter_directory_id=b"v" * 16,
            listeners=[Listener(name="CONTROLLER", host="localhost", port=9)],
        )
        script.ask("add a voter", voter, AddRaftVoterResponse, version)
    voter.cluster_id = "another"
    script.ask("add a voter to another cluster", voter, AddRaftVoterResponse, 1)
    removed = RemoveRaftVoterRequest(cluster_id=None, voter_id=1, voter_directory_id=b"v" * 16)
    script.ask("remove a voter", removed, RemoveRaftVoterResponse, 0)
    removed.cluster_id = "another"
    script.ask("remove a voter of another cluster", removed, RemoveRaftVoterResponse, 0)
    script.ask("unregister nobody", UnregisterBrokerRequest(broker_id=42), UnregisterBrokerResponse, 0)
    script.ask("unregister -1", UnregisterBrokerRequest(broker_id=-1), UnregisterBrokerResponse, 0)


def producers(script: Transcript, name: str) -> None:
    script.create_topic(name, 2)

    def describe(label: str, topic: str, *partitions: int) -> None:
        request = DescribeProducersRequest(topics=[TopicRequest(name=topic, partition_indexes=list(partitions))])
        script.ask(label, request, DescribeProducersResponse, 0)

    describe("nobody", name, 0, 1)
    for sequence in range(2):
        batch = batches.build([b"a", b"b"], producer_id=4242, producer_epoch=3, base_sequence=sequence * 2)
        script.ask(f"write {sequence}", produce_request(name, {0: batch}), ProduceResponse, 9)
    describe("one", name, 0, 1)
    describe("unknown partition", name, 5, -1)
    describe("unknown topic", name + "-absent", 0)
    describe("no topic name", "", 0)
    describe("bad name", "no/slashes", 0)
    describe("no partition", name)
    describe("twice", name, 0, 0)
    script.ask("no topic", DescribeProducersRequest(), DescribeProducersResponse, 0)


def transactions(script: Transcript, name: str) -> None:
    wait_for_transaction_coordinator(script, name)
    for version in range(3):
        script.ask("list", ListTransactionsRequest(), ListTransactionsResponse, version)
        filtered = ListTransactionsRequest(state_filters=["Ongoing", "Frobnicated", "ongoing", ""])
        script.ask("unknown states", filtered, ListTransactionsResponse, version)
    by_producer = ListTransactionsRequest(producer_id_filters=[7], duration_filter=10)
    script.ask("of a producer", by_producer, ListTransactionsResponse, 1)
    for label, pattern in {"a": "a.*", "no": "", "a broken": "a(", "a lookbehind": "(?<=a)b"}.items():
        script.ask(
            f"{label} pattern", ListTransactionsRequest(transactional_id_pattern=pattern), ListTransactionsResponse, 2
        )
    for label, ids in {"unknown": [name], "empty": [""], "none": [], "twice": [name, name]}.items():
        described = DescribeTransactionsRequest(transactional_ids=ids)
        script.ask(f"describe {label}", described, DescribeTransactionsResponse, 0)


SCRIPTS = (elections, reassignments, quorum, producers, transactions)
