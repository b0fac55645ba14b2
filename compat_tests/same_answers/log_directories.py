"""Scripts about log directories: their contents, and moving partitions between them. The brokers have two each."""

from __future__ import annotations

from typing import Any

from compat_tests import batches
from compat_tests.raw_client import produce_request
from compat_tests.same_answers.records import fetch_of
from compat_tests.same_answers.transcript import Transcript
from compat_tests.waiting import until
from kafkacompat.wire.apis.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopic,
)
from kafkacompat.wire.apis.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
)
from kafkacompat.wire.apis.fetch import FetchResponse
from kafkacompat.wire.apis.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from kafkacompat.wire.apis.produce import ProduceResponse

VERSIONS = range(1, 6)


class Directories:
    """The directories of one broker as one topic sees them."""

    def __init__(self, script: Transcript, topic: str) -> None:
        self._script = script
        self._topic = topic

    def describe(self, version: int = 5, **partitions: list[int] | None) -> DescribeLogDirsResponse:
        """Return the description without a note: of the named partitions of each topic, or of all topics."""
        probe = Transcript(self._script.port)
        topics = [
            DescribableLogDirTopic(topic=topic, partitions=indexes or []) for topic, indexes in partitions.items()
        ]
        request = DescribeLogDirsRequest(topics=topics if partitions else None)
        answer = probe.ask("describe", request, DescribeLogDirsResponse, version)
        probe.close()
        assert answer is not None
        return answer

    def contents(self, path: str) -> list[Any]:
        """The topic's partitions in one directory."""
        directory = next(result for result in self.describe().results if result.log_dir == path)
        return [part for topic in directory.topics if topic.name == self._topic for part in topic.partitions]

    def note(self, label: str, version: int, **partitions: list[int] | None) -> None:
        """Note the description of the topic, and whether it has a size of the disks."""
        answer = self.describe(version, **partitions)
        descriptions = [
            [
                directory.error_code,
                directory.is_cordoned,
                directory.total_bytes >= directory.usable_bytes > 0,
                topic.partitions,
            ]
            for directory in answer.results
            for topic in directory.topics
            if topic.name == self._topic
        ]
        self._script.note(f"{label} v{version}", [answer.error_code, len(answer.results), descriptions])

    def homes(self, index: int = 0) -> tuple[str, str]:
        """Return (the directory that holds a partition, the other directory)."""
        paths = [directory.log_dir for directory in self.describe().results]
        home = next(path for path in paths if any(part.partition_index == index for part in self.contents(path)))
        return home, next(path for path in paths if path != home)


def alter_directories(script: Transcript, label: str, *wanted: tuple[str, str, list[int]], version: int = 2) -> None:
    """Ask for (directory, topic, partitions)."""
    moves = [
        AlterReplicaLogDir(path=path, topics=[AlterReplicaLogDirTopic(name=topic, partitions=partitions)])
        for path, topic, partitions in wanted
    ]
    script.ask(label, AlterReplicaLogDirsRequest(dirs=moves), AlterReplicaLogDirsResponse, version)


def described_directories(script: Transcript, name: str) -> None:
    script.create_topic(name)
    batch = batches.build([b"a", b"b"])
    script.ask("fill", produce_request(name, {0: batch}), ProduceResponse, 9)
    directories = Directories(script, name)
    for version in VERSIONS:
        directories.note("all", version)
        directories.note("one", version, **{name: [0]})
        directories.note("unknown partition", version, **{name: [4, -1]})
        directories.note("no partition", version, **{name: []})
        directories.note("unknown topic", version, **{name + "-absent": [0]})
    directories.note("twice", 5, **{name: [0, 0]})
    script.ask("no topic", DescribeLogDirsRequest(topics=[]), DescribeLogDirsResponse, 1)


def moved_partitions(script: Transcript, name: str) -> None:
    script.create_topic(name, 2)
    for number in range(3):
        batch = batches.build([b"a", b"b"], producer_id=77, producer_epoch=0, base_sequence=2 * number)
        script.ask(f"fill {number}", produce_request(name, {0: batch}), ProduceResponse, 9)
    directories = Directories(script, name)
    home, other = directories.homes()
    for version in VERSIONS[:2]:
        alter_directories(script, "where it is", (home, name, [0]), version=version)
        alter_directories(script, "nowhere", ("/nowhere", name, [0]), version=version)
    alter_directories(script, "relative", ("nowhere", name, [0]))
    alter_directories(script, "no path", ("", name, [0]))
    alter_directories(script, "with a slash", (home + "/", name, [0]))
    alter_directories(script, "unknown topic", (other, name + "-absent", [0]))
    alter_directories(script, "unknown partition", (other, name, [9]))
    alter_directories(script, "negative partition", (other, name, [-1]))
    alter_directories(script, "bad name", (other, "no/slashes", [0]))
    alter_directories(script, "no partition", (other, name, []))
    alter_directories(script, "nothing")
    alter_directories(script, "unknown topic nowhere", ("/nowhere", name + "-absent", [0]))
    alter_directories(script, "two paths", ("/nowhere", name, [0]), (home, name, [0]))
    alter_directories(script, "partition twice", (home, name, [0, 0]))
    alter_directories(script, "away", (other, name, [0]))
    until(lambda: [part.is_future_key for part in directories.contents(other) if not part.partition_index] == [False])
    directories.note("after", 5, **{name: [0]})
    script.ask("read", fetch_of(name, 0), FetchResponse, 11)
    last = batches.build([b"a", b"b"], producer_id=77, producer_epoch=0, base_sequence=4)
    script.ask("write again", produce_request(name, {0: last}), ProduceResponse, 9)
    after = batches.build([b"a", b"b"], producer_id=77, producer_epoch=0, base_sequence=6)
    script.ask("write on", produce_request(name, {0: after}), ProduceResponse, 9)
    times = [ListOffsetsPartition(partition_index=0, timestamp=timestamp) for timestamp in (-1,)]
    asked = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=name, partitions=times)])
    script.ask("end", asked, ListOffsetsResponse, 7)
    new = name + "-new"
    for number, path in enumerate((home, other)):
        alter_directories(script, f"before it exists, {number}", (path, f"{new}-{number}", [0]))
        script.create_topic(f"{new}-{number}")
        script.note(f"made where wanted, {number}", Directories(script, f"{new}-{number}").homes()[0] == path)
    long = "x" * 230
    script.create_topic(long + name[-9:])
    alter_directories(script, "too long for a copy", (other, long + name[-9:], [0]))


SCRIPTS = (described_directories, moved_partitions)
