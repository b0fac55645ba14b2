"""Copiers: members of a group that consume records, produce copies and commit the offsets in one transaction."""

from __future__ import annotations

from contextlib import closing
from functools import partial
from typing import Any

from confluent_kafka import KafkaException

from kafkacompat.history.client import HistoryClient
from kafkacompat.history.events import READ_COMMITTED
from kafkacompat.history.producing import ABORTED_SHARE, CALL_S, TransactionalValueSender
from kafkacompat.history.reading import RecordedConsumer, build_group_config

MOST_AT_ONCE = 20


def run_copier(client: HistoryClient) -> None:
    """Copy each committed record once, and abort some transactions."""
    sender = TransactionalValueSender(client)
    with closing(
        RecordedConsumer(client, client.names.copiers, READ_COMMITTED, **build_group_config(client))
    ) as reading:
        reading.subscribe(client.names.records)
        while client.should_continue():
            messages = reading.read(MOST_AT_ONCE)
            if messages and not _copy_in_transaction(client, sender, reading, messages):
                reading.rewind()


def _copy_in_transaction(
    client: HistoryClient, sender: TransactionalValueSender, reading: RecordedConsumer, messages: list[Any]
) -> bool:
    """Copy messages in one transaction; returns whether it is committed."""
    places = client.names.copy_partitions()
    sender.begin()
    try:
        for message in messages:
            source = message.topic(), message.partition(), message.offset()
            sender.send(places[message.partition() % len(places)], sender.transaction, source)
        offsets, numbers = reading.record_commits(messages, sender.transaction)
        metadata = reading.consumer.consumer_group_metadata()
        client.retry(partial(sender.producer.send_offsets_to_transaction, offsets, metadata, CALL_S))
        reading.record_acknowledged_commits(numbers)
        commit = client.random.random() >= ABORTED_SHARE
    except KafkaException as problem:
        # The group may be in its next generation, for example.
        if not problem.args[0].txn_requires_abort():
            raise
        commit = False
    return sender.end(commit)
