"""The clients of a run, and the verdict on what they saw."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

from kafkacompat.client.connections import BrokerConnections
from kafkacompat.client.settings import BrokerAddress, ConnectionSettings
from kafkacompat.wire.apis.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kafkacompat.wire.record_batch import build_batch, read_records, split_batches
from tests.simulation.settings import PORT, host_of

if TYPE_CHECKING:
    from tests.simulation.world import World


class _Producer:
    def __init__(self, world: World, topic: str, index: int) -> None:
        self.world, self.topic, self.index = world, topic, index
        name = f"producer-{topic}-{index}"
        self.clock, network = world.new_host(name)
        self.rng = Random(f"{world.seed} {name}")
        self.connections = BrokerConnections(ConnectionSettings("p"), network, self.clock, self.rng)
        self.sent = 0
        self.acknowledged: list[tuple[int, bytes]] = []
        self.running = True
        self.idle = False
        self.last_s = 0.0
        self.node = 1
        self.go()

    def go(self) -> None:
        if not self.running:
            self.idle = True
            return
        stored = self.world.stored.partitions[self.topic, self.index]
        leader = stored.state.leader if stored.state else -1
        self.node = leader if leader > 0 else self.rng.choice(self.world.settings.nodes)
        value = b"%s-%d-%d" % (self.topic.encode(), self.index, self.sent)
        self.sent += 1
        now_ms = int(self.clock.seconds() * 1000)
        data = PartitionProduceData(index=self.index, records=build_batch([(now_ms, b"k", value, [])]))
        topic = TopicProduceData(name=self.topic, topic_id=stored.key.topic_id, partition_data=[data])
        request = ProduceRequest(acks=-1, timeout_ms=5000, topic_data=[topic])
        address = BrokerAddress(self.node, host_of(self.node), PORT)
        sending = self.connections.request(address, "p", request, timeout_s=8.0)
        sending.addCallbacks(self.answered, lambda failure: None, callbackArgs=(value,))
        sending.addBoth(lambda _: self.clock.callLater(self.rng.uniform(0.01, 0.2), self.go))

    def answered(self, response: Any, value: bytes) -> None:
        answer = response.responses[0].partition_responses[0]
        if not answer.error_code:
            self.acknowledged.append((answer.base_offset, value))
            self.last_s = self.world.elapsed_s


class Load:
    """The clients."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._producers = [
            _Producer(world, topic.name, index) for topic in world.settings.topics for index in range(topic.partitions)
        ]
        self._healed_s: float | None = None

    def is_served(self) -> bool:
        """Return whether each client has been served since this was asked first."""
        return not self.list_unserved()

    def list_unserved(self) -> list[str]:
        """Return a sentence for each client that is not served."""
        if self._healed_s is None:
            self._healed_s = self._world.elapsed_s
        return [
            f"the producer of {producer.topic}-{producer.index} is not served"
            for producer in self._producers
            if producer.last_s <= self._healed_s
        ]

    def stop(self) -> None:
        """Let the clients end."""
        for producer in self._producers:
            producer.running = False

    def has_ended(self) -> bool:
        """Return whether they have ended."""
        return all(producer.idle for producer in self._producers)

    def judge(self) -> None:
        """Report what the clients should not have seen."""
        for producer in self._producers:
            stored = self._world.stored.partitions[producer.topic, producer.index]
            if stored.key in self._world.monitor.lossy:
                continue
            assert stored.state is not None
            broker = self._world.machines[stored.state.leader].broker
            assert broker is not None
            partition = broker.replica_manager.find(producer.topic, producer.index)
            values: dict[int, bytes | None] = {}
            offset = 0
            while offset < partition.log.log_end_offset:
                region = partition.log.reader.read(offset, 1 << 30)
                assert region is not None
                data = region.pread(0, region.size_bytes)
                region.release()
                for batch in split_batches(data):
                    for record in read_records(batch):
                        values[record.offset] = record.value
                        offset = record.offset + 1
            lost = [item for item in producer.acknowledged if values.get(item[0]) != item[1]]
            if lost:
                self._world.report(f"{producer.topic}-{producer.index} lost {lost[:3]}, {len(lost)} in all")
