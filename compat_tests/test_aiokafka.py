"""The aiokafka client in its everyday use."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.structs import OffsetAndMetadata

from compat_tests.batches import RECENT_MS
from compat_tests.brokers import Broker

CODECS = (None, "gzip", "snappy", "lz4", "zstd")


def run(work: Coroutine[Any, Any, None]) -> None:
    """Run one test's coroutine to its end, within a minute."""
    asyncio.run(asyncio.wait_for(work, 60))


async def create_topic(broker: Broker, topic: str, partitions: int = 1) -> None:
    admin = AIOKafkaAdminClient(bootstrap_servers=broker.bootstrap)
    await admin.start()
    await admin.create_topics([NewTopic(topic, partitions, 1)])
    await admin.close()


async def produce(broker: Broker, topic: str, values: list[bytes], **options: Any) -> list[int]:
    async with AIOKafkaProducer(bootstrap_servers=broker.bootstrap, linger_ms=5, **options) as producer:
        futures = [await producer.send(topic, value) for value in values]
        return [(await future).offset for future in futures]


def consumer_of(broker: Broker, topic: str, group: str | None = None) -> Any:
    return AIOKafkaConsumer(
        topic,
        bootstrap_servers=broker.bootstrap,
        group_id=group,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        heartbeat_interval_ms=500,
        session_timeout_ms=6000,
        fetch_max_wait_ms=100,
    )


async def read(consumer: Any, count: int) -> list[Any]:
    records: list[Any] = []
    while len(records) < count:
        for batch in (await consumer.getmany(timeout_ms=200)).values():
            records.extend(batch)
    return records


@pytest.mark.parametrize("codec", CODECS)
def test_codecs(broker: Broker, name: str, codec: str | None) -> None:
    async def scenario() -> None:
        await create_topic(broker, name)
        values = [b"%06d " % number + b"x" * 100 for number in range(500)]
        assert await produce(broker, name, values, compression_type=codec) == list(range(500))
        async with consumer_of(broker, name) as consumer:
            assert [record.value for record in await read(consumer, 500)] == values

    run(scenario())


def test_idempotent_producer_and_headers(broker: Broker, name: str) -> None:
    async def scenario() -> None:
        await create_topic(broker, name)
        async with AIOKafkaProducer(bootstrap_servers=broker.bootstrap, enable_idempotence=True) as producer:
            for number in range(20):
                await producer.send_and_wait(
                    name, b"%d" % number, key=b"k", headers=[("n", b"%d" % number)], timestamp_ms=RECENT_MS
                )
        async with consumer_of(broker, name) as consumer:
            records = await read(consumer, 20)
        assert [record.headers for record in records] == [(("n", b"%d" % number),) for number in range(20)]
        assert {(record.key, record.timestamp) for record in records} == {(b"k", RECENT_MS)}

    run(scenario())


def test_group_commits_and_goes_on(broker: Broker, name: str) -> None:
    async def scenario() -> None:
        await create_topic(broker, name, 2)
        await produce(broker, name, [b"%d" % number for number in range(100)])
        async with consumer_of(broker, name, name) as consumer:
            await read(consumer, 100)
            await consumer.commit()
            ends = await consumer.end_offsets([TopicPartition(name, 0), TopicPartition(name, 1)])
            first = TopicPartition(name, 0)
            await consumer.commit({first: OffsetAndMetadata(ends[first] - 1, "one back")})
        async with consumer_of(broker, name, name) as again:
            record = await again.getone()
            assert (record.partition, record.offset) == (0, ends[first] - 1)

    run(scenario())


def test_two_members_share_the_partitions(broker: Broker, name: str) -> None:
    async def scenario() -> None:
        await create_topic(broker, name, 4)
        async with consumer_of(broker, name, name) as first, consumer_of(broker, name, name) as second:
            while not len(first.assignment()) == len(second.assignment()) == 2:
                await asyncio.gather(first.getmany(timeout_ms=100), second.getmany(timeout_ms=100))
            assert not first.assignment() & second.assignment()

    run(scenario())


def test_seek_and_offsets_by_time(broker: Broker, name: str) -> None:
    async def scenario() -> None:
        await create_topic(broker, name)
        async with AIOKafkaProducer(bootstrap_servers=broker.bootstrap) as producer:
            for number in range(10):
                await producer.send_and_wait(name, b"%d" % number, timestamp_ms=RECENT_MS + 1000 * number)
        part = TopicPartition(name, 0)
        async with consumer_of(broker, name) as consumer:
            offsets = await consumer.offsets_for_times({part: RECENT_MS + 4_500})
            assert offsets[part].offset == 5
            consumer.seek(part, 7)
            assert (await consumer.getone()).value == b"7"

    run(scenario())
