"""Consume, transform, produce: members of a group whose offsets are committed with what came of the records."""

from __future__ import annotations

from contextlib import closing
from functools import partial
from typing import Any

from confluent_kafka import KafkaException

from kafkacompat.history.client import Client
from kafkacompat.history.events import READ_COMMITTED
from kafkacompat.history.producing import ABORTED_SHARE, CALL_S, TransactionalSender
from kafkacompat.history.reading import Reading, group_config

MOST_AT_ONCE = 20


def copy(client: Client) -> None:
    """Copy what is committed, each record once, and abort now and then."""
    sender = TransactionalSender(client)
    with closing(Reading(client, client.names.copiers, READ_COMMITTED, **group_config(client))) as reading:
        reading.join(client.names.records)
        while client.goes_on():
            messages = reading.read(MOST_AT_ONCE)
            if messages and not _copy(client, sender, reading, messages):
                reading.go_back()


def _copy(client: Client, sender: TransactionalSender, reading: Reading, messages: list[Any]) -> bool:
    """Whether it is committed."""
    places = client.names.copy_places()
    sender.begin()
    try:
        for message in messages:
            source = message.topic(), message.partition(), message.offset()
            sender.send(places[message.partition() % len(places)], sender.transaction, source)
        offsets, numbers = reading.note_commits(messages, sender.transaction)
        metadata = reading.consumer.consumer_group_metadata()
        client.again(partial(sender.producer.send_offsets_to_transaction, offsets, metadata, CALL_S))
        reading.note_committed(numbers)
        commit = client.random.random() >= ABORTED_SHARE
    except KafkaException as problem:
        # As when the group is at its next generation.
        if not problem.args[0].txn_requires_abort():
            raise
        commit = False
    return sender.end(commit)
