"""A mirror of topics that are added, removed, or recreated rejects whatever would lose records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from spark_integration.command_line.mirror import command
from spark_integration.errors import PipelineError
from spark_integration.mirror import batches
from spark_integration.mirror.batches import MirrorBatchWriter
from spark_integration.mirror.offset_map import MirrorLink, MirrorOffsetMap, OffsetPair, OffsetPairs
from spark_integration.mirror.pipeline import _check_topics
from spark_integration.state.checkpoint import PlannedBatch
from spark_integration.topics.cluster import OffsetSpec, TopicDescription
from spark_integration.topics.names import TargetNames
from spark_integration.topics.offsets import Offsets, TopicPartition

EARLIEST, LATEST = 3, 70
ORDERS = TopicPartition("orders", 0)


class FakeCluster:
    """An Admin client over topics of one partition; the first *late* descriptions lack them all."""

    def __init__(self, bootstrap: str, *topics: TopicDescription) -> None:
        self.bootstrap = bootstrap
        self.descriptions = {topic.name: topic for topic in topics}
        self.late = 0
        self.latest = LATEST
        self.configs: dict[str, str] = {}

    def topics(self, names: Iterable[str]) -> dict[str, TopicDescription]:
        self.late -= 1
        return {} if self.late >= 0 else {name: self.descriptions[name] for name in names if name in self.descriptions}

    def partitions(self, names: Iterable[str]) -> list[TopicPartition]:
        return [TopicPartition(name, 0) for name in names]

    def offsets(self, places: Iterable[TopicPartition], spec: OffsetSpec) -> Offsets:
        return dict.fromkeys(places, EARLIEST if spec is OffsetSpec.EARLIEST else self.latest)

    def create_topic(self, name: str, partitions: int, configs: Mapping[str, str]) -> bool:
        if name in self.descriptions:
            return False
        self.descriptions[name] = TopicDescription(name, f"{name}-made", partitions, False)
        return True

    def topic_configs(self, name: str, *, with_defaults: bool = False) -> dict[str, str]:
        return self.configs


class FakeMap:
    """An offset map; *written* are its pairs."""

    topic = "map"

    def __init__(self, *links: MirrorLink) -> None:
        self.pairs = OffsetPairs()
        for link in links:
            self.pairs.put(link, -1, OffsetPair(0, 0))
        self.written: dict[MirrorLink, OffsetPair] = {}

    def read(self, _: Any) -> OffsetPairs:
        return self.pairs

    def write(self, entries: Iterable[tuple[MirrorLink, int, OffsetPair]]) -> None:
        self.written.update({link: pair for link, _, pair in entries})


class Scene:
    """Clusters a and b, each with a topic `orders`, and the batches of a mirror from a to b."""

    def __init__(
        self, *known: MirrorLink, back: Iterable[MirrorLink] = (), named: bool = True, names: TargetNames | None = None
    ) -> None:
        self.source_cluster = FakeCluster("a:1", TopicDescription("orders", "1", 1, False))
        self.target_cluster = FakeCluster("b:1", TopicDescription("orders", "2", 1, False))
        self.map = FakeMap(*known)
        source: Any = SimpleNamespace(cluster=self.source_cluster, id="A", map=FakeMap(*back), options={})
        target: Any = SimpleNamespace(cluster=self.target_cluster, id="B", map=self.map, options={})
        spark: Any = None
        self.batches = MirrorBatchWriter(spark, source, target, names or TargetNames(), "/checkpoint", named)


def make_link(topic_id: str = "1", target_id: str = "2") -> MirrorLink:
    return MirrorLink("A", "orders", topic_id, 0, "orders", target_id)


@pytest.mark.parametrize(
    ("known", "begins"),
    [
        # The map may be lost, and the target full.
        ([], EARLIEST),
        ([make_link(target_id="old")], EARLIEST),
        # The target's records are an earlier topic's.
        ([make_link("old")], LATEST),
    ],
)
def test_where_a_new_link_begins(known: list[MirrorLink], begins: int) -> None:
    scene = Scene(*known)
    scene.batches.learn_topics(["orders"], {})
    assert scene.map.written == {make_link(): OffsetPair(0, begins)}


@pytest.mark.parametrize(
    ("before", "subject"),
    [(make_link("old"), "topic orders on a:1"), (make_link(target_id="old"), "topic orders on b:1")],
)
def test_a_recreated_topic_is_refused(before: MirrorLink, subject: str) -> None:
    """Its records before the checkpoint's offset would never be mirrored."""
    scene = Scene(before)
    with pytest.raises(
        PipelineError, match=rf"^{subject} was deleted and recreated, .* give a new --checkpointLocation$"
    ):
        scene.batches.learn_topics(["orders"], {ORDERS: 30})
    assert scene.map.written == {}
    # A new checkpoint.
    scene = Scene(before)
    scene.batches.learn_topics(["orders"], {})
    assert scene.map.written.keys() == {make_link()}


def test_a_checkpoint_of_another_target_is_not_gone_on_with() -> None:
    """The target would never get what it lacks; if only the map is lost, it has records."""
    scene = Scene()
    scene.target_cluster.latest = 0
    with pytest.raises(
        PipelineError,
        match=r"^topic orders on b:1 holds no records, though the checkpoint says that some were mirrored",
    ):
        scene.batches.learn_topics(["orders"], {ORDERS: 30})
    assert scene.map.written == {}
    scene = Scene()
    scene.batches.learn_topics(["orders"], {ORDERS: 30})
    assert scene.map.written.keys() == {make_link()}


def test_a_known_topic_is_gone_on_with() -> None:
    scene = Scene(make_link("old"), make_link())
    scene.batches.learn_topics(["orders"], {ORDERS: 30})
    assert scene.map.written == {}


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Let a batch move `orders` from 0 to 5; return what it writes."""
    monkeypatch.setattr(batches, "read_planned_batch", lambda *_: PlannedBatch({ORDERS: -2}, {ORDERS: 5}, 0, 0))
    monkeypatch.setattr(batches, "POLL_S", 0)
    ends: list[Any] = []
    monkeypatch.setattr(MirrorBatchWriter, "_write", lambda _, frame, begin, end: ends.append((begin, end)))
    return ends


def test_a_topic_that_its_broker_does_not_know_yet(written: list[Any]) -> None:
    scene, frame = Scene(), Any
    scene.source_cluster.late = 2
    scene.batches(frame, 0)
    assert written == [({make_link(): 0}, {make_link(): 5})]


def test_a_topic_that_is_not_there_is_not_passed_by(written: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "APPEARS_S", 0)
    scene, frame = Scene(), Any
    del scene.source_cluster.descriptions["orders"]
    with pytest.raises(PipelineError, match=r"^partition 0 of orders has records to be mirrored and does not appear"):
        scene.batches(frame, 0)
    assert written == []


BACK = MirrorLink("B", "goods", "9", 0, "orders", "1")


def test_topics_of_a_mirror_are_left_out(written: list[Any]) -> None:
    scene, frame = Scene(back=[BACK], named=False), Any
    scene.batches(frame, 0)
    assert written == []
    assert scene.batches.left_out == {"orders"}


def test_a_topic_of_a_mirror_is_refused_by_name() -> None:
    message = r"^orders is a mirror of goods on b:1, .* as orders: leave it out, or give --map orders=goods$"
    with pytest.raises(PipelineError, match=message):
        Scene(back=[BACK]).batches.learn_topics(["orders"], {})


@pytest.mark.parametrize(("back", "names"), [(BACK._replace(target_id="old"), {}), (BACK, {"orders": "goods"})])
def test_topics_that_only_look_like_a_mirrors_are_mirrored(back: MirrorLink, names: dict[str, str]) -> None:
    """A recreated topic of the same name, and a mirror that goes back to its own name."""
    scene = Scene(back=[back], names=TargetNames("", names))
    scene.batches.learn_topics(["orders"], {})
    assert {link.topic for link in scene.map.written} == {"orders"}


def test_a_topic_that_forgets_is_no_offset_map() -> None:
    spark: Any = None
    cluster: Any = FakeCluster("b:1")
    MirrorOffsetMap(spark, {}, "map").make(cluster)
    cluster.configs = {"cleanup.policy": "compact"}
    MirrorOffsetMap(spark, {}, "map").make(cluster)
    cluster.configs = {"cleanup.policy": "compact,delete"}
    with pytest.raises(PipelineError, match=r"^topic map on b:1 has cleanup.policy=compact,delete, and an offset map"):
        MirrorOffsetMap(spark, {}, "map").make(cluster)


def test_nothing_splits_a_partition() -> None:
    """The option is not offered, and rejected in any case, since Spark ignores case."""
    assert "minPartitions" not in {parameter.name for parameter in command.params}
    nothing: Any = None
    with pytest.raises(PipelineError, match=r"^minpartitions would mix up the order of a partition"):
        _check_topics(nothing, {"subscribe": "a", "minpartitions": "9"}, {}, nothing, TargetNames(), "map")
