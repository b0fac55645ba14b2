"""The stored bytes of instances: equal to the sizes of the logs after any history of appends, cuts, moves and deletions."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any, TypeAlias

import pytest
from twisted.internet.defer import Deferred

from kafkacompat.config import BrokerConfig
from kafkacompat.config.resources import ResourceType
from kafkacompat.metadata.image import MetadataImage, TopicImage
from kafkacompat.partitions.partition import Partition
from kafkacompat.storage.intake.validation import check_batch
from kafkacompat.storage.log_config import LogConfig
from kafkacompat.tenancy.registry import Instances
from kafkacompat.upkeep.cleaning import LogCleaner
from kafkacompat.upkeep.housekeeping import Housekeeping
from kafkacompat.upkeep.instance_storage import InstanceStorage
from kafkacompat.wire.errors import ErrorCode, KafkaError
from kafkacompat.wire.record_batch import build_batch
from tests.fakes.disk import ManualDisk
from tests.fakes.workers import ManualWorkers
from tests.kafkacompat.partitions.node import Node, topic

HOUR_S = 3600
Configs: TypeAlias = "dict[tuple[int, str], dict[str, str]]"
CONFIG = LogConfig(segment_bytes=400, retention_ms=HOUR_S * 1000, file_delete_delay_ms=1000)


def give(name: str, **given: str) -> dict[str, str]:
    """The properties of an instance."""
    return {"cluster.id": f"{name}-id", "secret": "s", **{key.replace("_", "."): text for key, text in given.items()}}


class World:
    """A node with two log directories, and its instances."""

    def __init__(self, **instances: dict[str, str]) -> None:
        self.node = Node("/a", "/b", config=CONFIG)
        self.instances = Instances()
        self.storage = InstanceStorage(self.instances, self.node.replicas, self.node.clock)
        config = BrokerConfig({"node.id": "1"})
        self.housekeeping = Housekeeping(self.node.clock, config, self.node.replicas)
        self.workers = ManualWorkers(ManualDisk())
        self.cleaner = LogCleaner(self.housekeeping, self.node.moves, self.workers, self.node.files, lambda: config)
        self.cleaner.start()
        self.set(**instances)
        self.storage.start()

    def set(self, **instances: dict[str, str]) -> None:
        """Let there be these instances."""
        names = instances.keys() | self.instances.by_name.keys()
        configs: Configs = {(ResourceType.INSTANCE, name): given for name, given in instances.items()}
        self.instances.update(MetadataImage(configs=configs))
        self.storage.update(names)
        self.work()

    def work(self, seconds: float = 0) -> None:
        self.node.clock.advance(seconds)
        for _ in range(3):
            while any(disk.waiting for disk in (*self.node.disks, self.workers.disk)):
                for disk in (*self.node.disks, self.workers.disk):
                    disk.work()
            self.node.clock.advance(0)

    def open(self, name: str, partitions: int = 1) -> TopicImage:
        image = topic(name, partitions, topic_id=name.ljust(16, "_").encode()[:16])
        self.node.open(image)
        return image

    def find(self, name: str, index: int = 0) -> Partition:
        return self.node.replicas.find(name, index)

    def sizes(self, prefix: str, leaders_only: bool = False) -> int:
        """What the instance's logs hold, segment by segment."""
        return sum(
            segment.size_bytes
            for partition in self.node.replicas
            if partition.topic.startswith(prefix) and (partition.is_leader or not leaders_only)
            for segment in partition.log.segments
        )

    def stored(self, name: str) -> int:
        account = self.storage.find_account(name)
        assert account is not None
        return account.stored_bytes


class History:
    """Random operations on the partitions of a world."""

    def __init__(self, world: World, seed: int) -> None:
        self.world = world
        self.rng = Random(seed)
        self.topics = {name: world.open(name, 2) for name in ("shop.t", "shop.u", "bank.t", "t")}
        self.epoch = 10

    def choose(self) -> Partition | None:
        partitions = list(self.world.node.replicas)
        return self.rng.choice(partitions) if partitions else None

    def append(self, partition: Partition) -> None:
        if partition.is_leader:
            record: Any = (self.world.node.now_ms, self.rng.choice([b"a", b"b"]), b"v" * self.rng.randrange(200), [])
            appended = partition.append(build_batch([record]), self.world.node.now_ms)
            if isinstance(appended, Deferred):
                appended.addErrback(lambda failure: failure.trap(KafkaError))
        else:
            record = (self.world.node.now_ms, b"k", b"v" * self.rng.randrange(200), [])
            records = build_batch([record], base_offset=partition.log.log_end_offset, leader_epoch=self.epoch)
            fetched = partition.follower.append_fetched(records, 1 << 40, 0, self.world.node.now_ms)
            if isinstance(fetched, Deferred):
                fetched.addErrback(lambda failure: failure.trap(KafkaError))

    def resign(self, partition: Partition) -> None:
        self.epoch += 1
        for other in self.world.node.replicas:
            if not other.is_leader:
                other.become_follower(2, self.epoch)
        partition.become_follower(2, self.epoch)

    def truncate(self, partition: Partition) -> None:
        if not partition.is_leader:
            end = partition.log.log_end_offset
            offset = self.rng.randint(partition.log.log_start_offset, end)
            self.world.node.replicas.truncate(partition, offset).addErrback(lambda failure: failure.trap(KafkaError))

    def start_over(self, partition: Partition) -> None:
        if not partition.is_leader:
            self.world.node.replicas.start_over_at(partition, 5).addErrback(lambda failure: failure.trap(KafkaError))

    def delete_records(self, partition: Partition) -> None:
        if partition.is_leader and "delete" in partition.log.config.cleanup_policy:
            self.world.node.replicas.delete_records(partition, -1)
            self.world.housekeeping.delete_expired_segments()

    def expire(self, partition: Partition) -> None:
        self.world.work(HOUR_S)
        self.world.housekeeping.delete_expired_segments()

    def roll(self, partition: Partition) -> None:
        if partition.log.segments.active.size_bytes:
            partition.roll()

    def move(self, partition: Partition) -> None:
        home = self.world.node.replicas.directories.find_home((partition.topic, partition.index))
        target = next(other for other in self.world.node.directories if other is not home)
        self.world.node.moves.request(partition, target)

    def compact(self, partition: Partition) -> None:
        partition.log.config = replace(CONFIG, cleanup_policy=frozenset({"compact"}), min_cleanable_dirty_ratio=0.01)
        for _ in range(4):
            self.world.work(20)
        partition.log.config = CONFIG

    def delete(self, partition: Partition) -> None:
        image = self.topics[partition.topic]
        self.world.node.replicas.delete_partitions(image)
        self.world.work()
        self.world.node.open(image)

    def reconfigure(self, partition: Partition) -> None:
        counts = self.rng.choice(["replicas", "partitions"])
        shop = {"shop": give("shop", limit_storage_counts=counts)} if self.rng.random() < 0.8 else {}
        self.world.set(**shop, bank=give("bank"))

    def step(self) -> None:
        operations = [self.append] * 12 + [
            self.resign,
            self.truncate,
            self.start_over,
            self.delete_records,
            self.expire,
            self.roll,
            self.move,
            self.compact,
            self.delete,
            self.reconfigure,
        ]
        partition = self.choose()
        if partition is not None:
            self.rng.choice(operations)(partition)


@pytest.mark.parametrize("seed", range(12))
def test_the_count_equals_the_sizes_of_the_logs_after_any_history(seed: int) -> None:
    world = World(shop=give("shop"), bank=give("bank"))
    history = History(world, seed)
    seen = 0
    for _ in range(120):
        history.step()
        if history.rng.random() < 0.7:
            world.work()
            for name, partitions in world.storage.by_name.items():
                leaders_only = not partitions.account.counts_replicas
                assert world.stored(name) == world.sizes(f"{name}.", leaders_only), (seed, name)
                seen = max(seen, world.stored(name))
    assert seen > 1000


def test_only_the_partitions_of_an_instance_are_counted() -> None:
    world = World(shop=give("shop"))
    for name in ("shop.t", "t"):
        world.open(name)
        world.node.append(world.find(name))
    assert world.stored("shop") == world.sizes("shop.") > 0
    assert world.find("t").state.account is None


def test_an_instance_that_comes_later_counts_what_exists() -> None:
    world = World()
    world.open("shop.t")
    world.node.append(world.find("shop.t"))
    world.set(shop=give("shop"))
    assert world.stored("shop") == world.sizes("shop.") > 0
    world.set()
    assert (world.storage.find_account("shop"), world.find("shop.t").state.account) == (None, None)


def test_leaders_alone_count_if_the_property_says_so() -> None:
    world = World(shop=give("shop", limit_storage_counts="partitions"))
    world.open("shop.t")
    partition = world.find("shop.t")
    world.node.append(partition)
    assert world.stored("shop") > 0
    partition.become_follower(2, 9)
    assert world.stored("shop") == 0


def test_a_full_instance_is_refused_until_retention_frees_it() -> None:
    world = World(shop=give("shop", limit_storage_bytes="500"))
    world.open("shop.t")
    partition = world.find("shop.t")
    while world.stored("shop") < 500:
        world.node.append(partition)
    with pytest.raises(KafkaError) as caught:
        world.node.append(partition)
    assert caught.value.code is ErrorCode.NOT_ENOUGH_REPLICAS
    world.work(2 * HOUR_S)
    world.housekeeping.delete_expired_segments()
    world.work()
    world.housekeeping.delete_expired_segments()
    world.work()
    assert world.node.append(partition).last_offset > 0


def test_what_brokers_write_for_themselves_is_not_held_back() -> None:
    world = World(shop=give("shop", limit_storage_bytes="0"))
    world.open("shop.t")
    result = world.find("shop.t").append(world.node.batch(), world.node.now_ms, from_client=False)
    assert not isinstance(result, Deferred)
    assert world.stored("shop") > 0


def test_a_refused_producer_continues_in_sequence() -> None:
    world = World(shop=give("shop", limit_storage_bytes="0"))
    world.open("shop.t")
    partition = world.find("shop.t")

    def batch(sequence: int) -> bytes:
        record: Any = (world.node.now_ms, b"k", b"v", [])
        return build_batch([record], producer_id=7, producer_epoch=0, base_sequence=sequence)

    def append(sequence: int) -> ErrorCode:
        checked = check_batch(batch(sequence), partition.log.config, world.node.now_ms, from_client=True)
        try:
            partition.append(checked, world.node.now_ms)
        except KafkaError as problem:
            return problem.code
        return ErrorCode.NONE

    assert (append(0), append(1)) == (ErrorCode.NOT_ENOUGH_REPLICAS,) * 2
    world.set(shop=give("shop"))
    # The second batch must not come first, though the log knows nothing of the producer yet.
    assert append(1) is ErrorCode.NOT_ENOUGH_REPLICAS
    assert (append(0), append(1)) == (ErrorCode.NONE,) * 2


def test_what_passes_through_partitions_stays_counted_when_they_go() -> None:
    world = World(shop=give("shop"))
    image = world.open("shop.t")
    partitions = world.storage.by_name["shop"]
    world.node.append(world.find("shop.t"))
    world.find("shop.t").traffic.note_fetch(50, False, False)
    produced = partitions.measure()
    assert (produced.produced_records, produced.fetched_bytes) == (1, 50)
    assert produced.produced_bytes == world.stored("shop")
    world.node.replicas.delete_partitions(image)
    world.work()
    after = partitions.measure()
    assert (after.produced_records, after.produced_bytes) == (1, produced.produced_bytes)
    assert world.stored("shop") == 0


def test_an_adopted_topic_changes_its_instance() -> None:
    world = World(shop=give("shop", topic_names="past:old"), bank=give("bank"))
    world.open("old")
    world.node.append(world.find("old"))
    size_bytes = world.find("old").log.size_bytes
    assert (world.stored("shop"), world.stored("bank")) == (size_bytes, 0)
    world.set(shop=give("shop"), bank=give("bank", topic_names="new:old"))
    assert (world.stored("shop"), world.stored("bank")) == (0, size_bytes)


def test_a_change_that_concerns_no_partition_goes_through_none(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(shop=give("shop"))
    world.open("shop.t")
    monkeypatch.setattr(world.storage, "_attach", lambda partition: pytest.fail(f"{partition} is attached again"))
    world.set(shop=give("shop", limit_storage_bytes="5", description="a shop"), bank=give("bank"))
    account = world.storage.find_account("shop")
    assert account is not None and account.has_limit
