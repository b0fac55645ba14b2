"""Drives aiokafka. Options: ``create`` (``auto`` or ``admin``), ``loop`` (``given`` for releases that ask for it)."""

import asyncio
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRebalanceListener, TopicPartition

from compat_tests.matrix.clients.python.common import (
    PATIENCE_SECONDS,
    Commands,
    header,
    key,
    options,
    serve,
    tell_assigned,
    tell_record,
    value,
)


class Listener(ConsumerRebalanceListener):  # type: ignore[misc]
    def on_partitions_revoked(self, revoked: Any) -> None:
        """Nothing to do: what was read is committed at the end."""

    def on_partitions_assigned(self, assigned: Any) -> None:
        tell_assigned(partition.partition for partition in assigned)


class Client:
    def __init__(self, named: "dict[str, str]") -> None:
        self.common = {"bootstrap_servers": named["bootstrap"], "client_id": "matrix"}
        self.by_admin = named.get("create") != "auto"
        self.with_loop = named.get("loop") == "given"

    def create(self, topic: str, partitions: int) -> None:
        asyncio.run(self._create(topic, partitions))

    def produce(self, mode: str, topic: str, codec: str, numbers: range, timestamp: int) -> None:
        asyncio.run(self._produce(mode, topic, codec, numbers, timestamp))

    def consume(self, committed: bool, topic: str, partitions: int, count: int) -> None:
        asyncio.run(self._consume(committed, topic, partitions, count))

    def join(self, topic: str, group: str, commands: Commands) -> None:
        asyncio.run(self._join(topic, group, commands))

    def settings(self, **more: Any) -> "dict[str, Any]":
        loop = {"loop": asyncio.get_running_loop()} if self.with_loop else {}
        return dict(self.common, **loop, **more)

    async def _create(self, topic: str, partitions: int) -> None:
        if not self.by_admin:
            producer = AIOKafkaProducer(**self.settings())
            await producer.start()
            await producer.partitions_for(topic)
            await producer.stop()
            return
        from aiokafka.admin import AIOKafkaAdminClient, NewTopic

        admin = AIOKafkaAdminClient(**self.settings())
        await admin.start()
        await admin.create_topics([NewTopic(topic, partitions, 1)])
        await admin.close()

    async def _produce(self, mode: str, topic: str, codec: str, numbers: range, timestamp: int) -> None:
        settings: "dict[str, Any]" = self.settings(acks="all", linger_ms=5)
        if mode != "plain":
            settings["enable_idempotence"] = True
        if mode in ("aborted", "committed"):
            settings["transactional_id"] = topic
        producer = AIOKafkaProducer(compression_type=None if codec == "none" else codec, **settings)
        await asyncio.wait_for(producer.start(), PATIENCE_SECONDS)
        try:
            if "transactional_id" in settings:
                await producer.begin_transaction()
            sent = [await self._send(producer, topic, number, timestamp) for number in numbers]
            await asyncio.wait_for(asyncio.gather(*sent), PATIENCE_SECONDS)
            if mode == "committed":
                await producer.commit_transaction()
            elif mode == "aborted":
                await producer.abort_transaction()
        finally:
            await asyncio.wait_for(producer.stop(), PATIENCE_SECONDS)

    async def _send(self, producer: Any, topic: str, number: int, timestamp: int) -> Any:
        headers = [("n", header(number))]
        more = {"timestamp_ms": timestamp + number, "headers": headers}
        return await producer.send(topic, key=key(number), value=value(number), **more)

    def _consumer(self, *topics: str, **more: Any) -> Any:
        settings: "dict[str, Any]" = self.settings(auto_offset_reset="earliest", enable_auto_commit=False)
        settings.update(session_timeout_ms=10000, heartbeat_interval_ms=500, fetch_max_wait_ms=100)
        settings.update(more)
        return AIOKafkaConsumer(*topics, **settings)

    async def _consume(self, committed: bool, topic: str, partitions: int, count: int) -> None:
        consumer = self._consumer(isolation_level="read_committed" if committed else "read_uncommitted")
        consumer.assign([TopicPartition(topic, number) for number in range(partitions)])
        await consumer.start()
        seen = 0
        deadline = asyncio.get_running_loop().time() + PATIENCE_SECONDS
        while seen < count:
            seen += await self._tell_next(consumer)
            if asyncio.get_running_loop().time() > deadline:
                raise RuntimeError(f"only {seen} of {count} records came")
        await consumer.stop()

    async def _join(self, topic: str, group: str, commands: Commands) -> None:
        consumer = self._consumer(group_id=group)
        consumer.subscribe([topic], listener=Listener())
        await consumer.start()
        while not commands.leave():
            await self._tell_next(consumer)
        await consumer.commit()
        await consumer.stop()

    async def _tell_next(self, consumer: Any) -> int:
        count = 0
        for records in (await consumer.getmany(timeout_ms=200)).values():
            for record in records:
                tell_record(record.partition, record.offset, record.key, record.value, record.timestamp, record.headers)
                count += 1
        return count


if __name__ == "__main__":
    serve(Client(options()))
