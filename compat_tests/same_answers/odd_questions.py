"""Scripts of questions that no client in its right mind asks, about APIs that other scripts ask sensibly."""

from __future__ import annotations

from compat_tests import batches
from compat_tests.raw_client import produce_request
from compat_tests.same_answers.transcript import Transcript
from kafkacompat.wire.apis.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from kafkacompat.wire.apis.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from kafkacompat.wire.apis.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    TopicRequest,
)
from kafkacompat.wire.apis.produce import ProduceResponse


def odd_deletions(script: Transcript, name: str) -> None:
    script.create_topic(name)
    script.ask("fill", produce_request(name, {0: batches.build([b"a", b"b", b"c"])}), ProduceResponse, 9)

    def delete(label: str, *wanted: tuple[str, list[tuple[int, int]]]) -> None:
        topics = [
            DeleteRecordsTopic(
                name=topic,
                partitions=[DeleteRecordsPartition(partition_index=index, offset=offset) for index, offset in parts],
            )
            for topic, parts in wanted
        ]
        script.ask(label, DeleteRecordsRequest(topics=topics, timeout_ms=5000), DeleteRecordsResponse, 2)

    delete("nothing")
    delete("no partition", (name, []))
    delete("offset -2", (name, [(0, -2)]))
    delete("partition -1", (name, [(-1, 0)]))
    delete("partition 7", (name, [(7, 0)]))
    delete("no name", ("", [(0, 0)]))
    delete("bad name", ("no/slashes", [(0, 0)]))
    delete("within a batch", (name, [(0, 1)]))
    delete("twice", (name, [(0, 1), (0, 2)]))
    delete("topic twice", (name, [(0, 1)]), (name, [(0, 2)]))
    delete("metadata", ("__cluster_metadata", [(0, 1)]))


def odd_descriptions(script: Transcript, name: str) -> None:
    for suffix in "ab":
        script.create_topic(f"{name}-{suffix}", 3)
    first, second = name + "-a", name + "-b"

    def ask(label: str, *names: str, limit: int = 2000, cursor: tuple[str, int] | None = None) -> None:
        given = None if cursor is None else Cursor(topic_name=cursor[0], partition_index=cursor[1])
        request = DescribeTopicPartitionsRequest(
            topics=[TopicRequest(name=topic) for topic in names], response_partition_limit=limit, cursor=given
        )
        script.ask(label, request, DescribeTopicPartitionsResponse, 0)

    ask("twice", first, first)
    ask("no name", "")
    ask("limit -1", first, limit=-1)
    ask("limit 1", first, second, limit=1)
    ask("limit of a topic", first, second, limit=3)
    ask("cursor elsewhere", first, second, cursor=(name + "-absent", 0))
    ask("cursor between", first, second, cursor=(name + "-aa", 0))
    ask("cursor behind", first, second, cursor=(name + "-z", 0))
    ask("cursor -1", first, second, cursor=(first, -1))
    ask("cursor beyond", first, second, cursor=(first, 9))
    ask("cursor and unknown", first, name + "-absent", cursor=(first, 1))
    ask("empty cursor", first, cursor=("", 0))
    ask("unknown within a limit", name + "-absent", first, limit=2)


def odd_growth(script: Transcript, name: str) -> None:
    script.create_topic(name)

    def grow(label: str, *wanted: tuple[str, int, list[list[int]] | None], only_check: bool = True) -> None:
        topics = [
            CreatePartitionsTopic(
                name=topic,
                count=count,
                assignments=None
                if given is None
                else [CreatePartitionsAssignment(broker_ids=broker_ids) for broker_ids in given],
            )
            for topic, count, given in wanted
        ]
        request = CreatePartitionsRequest(topics=topics, timeout_ms=5000, validate_only=only_check)
        script.ask(label, request, CreatePartitionsResponse, 3)

    grow("nothing")
    for count in (-1, 0, 1):
        grow(f"to {count}", (name, count, None))
    grow("no name", ("", 2, None))
    grow("bad name", ("no/slashes", 2, None))
    grow("no assignments", (name, 2, []))
    grow("an empty assignment", (name, 2, [[]]))
    grow("an unknown broker", (name, 2, [[9]]))
    grow("a negative broker", (name, 2, [[-1]]))
    grow("a broker twice", (name, 2, [[1, 1]]))
    grow("too many assignments", (name, 2, [[1], [1]]))
    grow("twice", (name, 2, None), (name, 3, None))
    grow("checked", (name, 2, [[1]]))
    grow("done", (name, 2, [[1]]), only_check=False)


SCRIPTS = (odd_deletions, odd_descriptions, odd_growth)
