"""Sending the controller's orders to the brokers, and reporting what they answer.

Metadata names a new leader once that leader has answered LeaderAndIsr: Kafka sends both at once, and its clients then meet
leaders that refuse them. A new partition is named at once, without its leader: coordinators are found by the number of the
partitions of a topic, and no broker may know fewer than another.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any, TypeAlias

from twisted.internet.defer import Deferred, DeferredList, succeed
from twisted.python.failure import Failure

from kafkacompat.cluster.channel import BrokerChannel, ChannelClosedError, SendRequest
from kafkacompat.cluster.decisions.broadcasts import BrokerOrders, MetadataRow, Moment, plan_broadcast
from kafkacompat.cluster.decisions.situation import ReplicaStop, TopicPartition
from kafkacompat.cluster.metadata_update import LEADER_DURING_DELETE
from kafkacompat.cluster.orders import (
    SendingController,
    build_leader_and_isr,
    build_stop_replica,
    build_update_metadata,
)
from kafkacompat.metadata.image import NO_LEADER
from kafkacompat.timers import Clock
from kafkacompat.wire.errors import ErrorCode

if TYPE_CHECKING:
    from kafkacompat.metadata.image import BrokerImage, MetadataImage
    from kafkacompat.wire.apis.leader_and_isr import LeaderAndIsrRequest, LeaderAndIsrResponse
    from kafkacompat.wire.apis.stop_replica import StopReplicaRequest, StopReplicaResponse
    from kafkacompat.wire.schema import Response

log = logging.getLogger(__name__)

WAIT_S = 5.0
"""Longest time that the answer to a client waits for brokers to learn of a change."""

ConnectTo: TypeAlias = "Callable[[BrokerImage], SendRequest]"
ReplicaAnswers: TypeAlias = "Callable[[BrokerImage, Collection[TopicPartition], Collection[TopicPartition]], None]"
DeletionAnswers: TypeAlias = "Callable[[BrokerImage, Mapping[TopicPartition, ErrorCode]], None]"


class Broadcasts:
    """The channels to all brokers of one controller epoch.

    ``connect`` returns the function that sends a broker a request. The controller sets ``on_replica_answers``, which receives
    the partitions that a broker cannot and can serve, and ``on_deletion_answers``; the broker is the one that was asked.
    """

    on_replica_answers: ReplicaAnswers
    on_deletion_answers: DeletionAnswers

    def __init__(self, sender: SendingController, listener: str, connect: ConnectTo, clock: Clock, rng: Random) -> None:
        self._sender = sender
        self._listener = listener
        self._connect = connect
        self._clock = clock
        self._rng = rng
        self._brokers: Mapping[int, BrokerImage] = {}
        self._channels: dict[int, BrokerChannel] = {}
        self._sent: dict[tuple[bytes, int], tuple[int, int]] = {}
        self._closed = False

    def set_brokers(self, brokers: Mapping[int, BrokerImage]) -> None:
        """Open channels to new brokers, close those to brokers that are gone; a broker of a new epoch gets a new channel."""
        for node_id in list(self._channels):
            if brokers.get(node_id) != self._brokers.get(node_id):
                self._channels.pop(node_id).close()
        self._brokers = brokers
        for node_id, broker in brokers.items():
            if node_id not in self._channels:
                self._channels[node_id] = BrokerChannel(node_id, self._connect(broker), self._clock, self._rng)

    def close(self) -> None:
        """Send nothing more."""
        self._closed = True
        for channel in self._channels.values():
            channel.close()
        self._channels.clear()

    def announce(
        self,
        old: Moment,
        new: Moment,
        stops: Iterable[ReplicaStop],
        started: Collection[int],
        queried: Collection[int] = (),
    ) -> Deferred[None]:
        """Tell the brokers what changed; fires when all have done it or are gone, and after WAIT_S at the latest.

        See `plan_broadcast` for *started* and *queried* brokers.
        """
        if self._closed:
            return succeed(None)
        broadcast = plan_broadcast(old, new, started=started, queried=queried, stops=stops)
        led: dict[int, Deferred[None]] = {}
        waiting: list[Deferred[None]] = []
        for orders in broadcast.orders:
            answers = self._send_orders(orders)
            if answers:
                led[orders.broker.node_id] = answered = _join(answers)
                waiting.append(answered)
        at_once: list[MetadataRow] = []
        later: dict[int, list[MetadataRow]] = {}
        for row in broadcast.metadata:
            if row.partition.leader in led:
                later.setdefault(row.partition.leader, []).append(row)
                if not _is_known(old.image, row):
                    at_once.append(_without_leader(row))
            else:
                at_once.append(row)
        if at_once or broadcast.brokers_changed:
            waiting += self._send_metadata(at_once)
        for leader, rows in later.items():
            waiting.append(self._send_metadata_after(led[leader], rows))
        return self.wait_a_while(waiting)

    def _send_orders(self, orders: BrokerOrders) -> list[Deferred[None]]:
        """Send one broker its orders; return the answers to LeaderAndIsr."""
        channel, broker = self._channels[orders.broker.node_id], orders.broker
        if orders.first_metadata is not None:
            first = build_update_metadata(self._sender, [broker], orders.first_metadata, self._brokers.values())
            for _, request in first:
                _then(channel.send(request), _ignore_answer)
        answers: list[Deferred[None]] = []
        if orders.leader_and_isr or orders.is_full:
            for leading in build_leader_and_isr(
                self._sender, broker, orders.leader_and_isr, self._brokers, self._listener, is_full=orders.is_full
            ):
                answers.append(_then(channel.send(leading), partial(self._on_leader_and_isr, broker, leading)))
        for stopping in build_stop_replica(self._sender, broker, orders.stop_replica):
            _then(channel.send(stopping), partial(self._on_stop_replica, broker, stopping))
        return answers

    # Metadata

    def _send_metadata_after(self, led: Deferred[None], rows: list[MetadataRow]) -> Deferred[None]:
        sent: Deferred[None] = Deferred()
        led.addCallback(lambda _: _join(self._send_metadata(rows)).chainDeferred(sent))
        return sent

    def _send_metadata(self, rows: Sequence[MetadataRow]) -> list[Deferred[None]]:
        """Send all brokers those rows that are newer than what they have been sent."""
        newer = [row for row in rows if self._note_newer(row)]
        brokers = list(self._brokers.values())
        recipients = [broker for broker in brokers if broker.node_id in self._channels]
        return [
            _then(self._channels[node_id].send(request), _ignore_answer)
            for node_id, request in build_update_metadata(self._sender, recipients, newer, brokers)
        ]

    def _note_newer(self, row: MetadataRow) -> bool:
        """Return whether a row is not older than the last one of its partition: two answers may come in another order."""
        key, partition = (row.topic_id, row.partition.partition), row.partition
        if partition.leader == LEADER_DURING_DELETE:
            self._sent.pop(key, None)
            return True
        epochs = (partition.leader_epoch, partition.partition_epoch)
        if epochs < self._sent.get(key, epochs):
            return False
        self._sent[key] = epochs
        return True

    # Answers

    def _on_leader_and_isr(self, broker: BrokerImage, sent: LeaderAndIsrRequest, answer: LeaderAndIsrResponse) -> None:
        if answer.error_code:
            log.warning("Broker %d rejects LeaderAndIsr: %s", broker.node_id, ErrorCode(answer.error_code).name)
            return
        names = {topic.topic_id: topic.topic_name for topic in sent.topic_states}
        codes = {
            TopicPartition(names[topic.topic_id], error.partition_index): error.error_code
            for topic in answer.topics
            if topic.topic_id in names
            for error in topic.partition_errors
        }
        failed = [key for key, code in codes.items() if code == ErrorCode.KAFKA_STORAGE_ERROR]
        working = [key for key, code in codes.items() if code == ErrorCode.NONE]
        self.on_replica_answers(broker, failed, working)

    def _on_stop_replica(self, broker: BrokerImage, sent: StopReplicaRequest, answer: StopReplicaResponse) -> None:
        deleted = {
            TopicPartition(topic.topic_name, state.partition_index)
            for topic in sent.topic_states
            for state in topic.partition_states
            if state.delete_partition
        }
        codes = {
            TopicPartition(error.topic_name, error.partition_index): ErrorCode(error.error_code)
            for error in answer.partition_errors
        }
        whole = ErrorCode(answer.error_code)
        answers = {key: codes.get(key, whole) if whole == ErrorCode.NONE else whole for key in deleted}
        if answers:
            self.on_deletion_answers(broker, answers)

    # Waiting

    def wait_a_while(self, waiting: Sequence[Deferred[None]]) -> Deferred[None]:
        """Fire when all have fired, or after WAIT_S: a broker that hangs holds up no client for longer."""
        ended: Deferred[None] = Deferred()
        call = self._clock.callLater(WAIT_S, ended.callback, None)

        def end(_: object) -> None:
            if call.active():
                call.cancel()
                ended.callback(None)

        DeferredList([_watch(deferred) for deferred in waiting]).addCallback(end)
        return ended


def _is_known(image: MetadataImage, row: MetadataRow) -> bool:
    """Return whether brokers that know an image know the partition of a row."""
    topic, index = image.topics_by_id.get(row.topic_id), row.partition.partition
    return topic is not None and index < len(topic.partitions) and topic.partitions[index].has_state


def _without_leader(row: MetadataRow) -> MetadataRow:
    """Return a row without a leader, which is older than all others of its partition."""
    return row._replace(partition=row.partition._replace(leader=NO_LEADER, leader_epoch=-1, partition_epoch=-1))


def _watch(deferred: Deferred[None]) -> Deferred[None]:
    """Return a Deferred that fires when another one does, and leaves its result alone."""
    watcher: Deferred[None] = Deferred()

    def fire(result: None) -> None:
        watcher.callback(None)
        return result

    deferred.addBoth(fire)
    return watcher


def _join(deferreds: Sequence[Deferred[None]]) -> Deferred[None]:
    return DeferredList([_watch(deferred) for deferred in deferreds]).addCallback(lambda _: None)


def _then(answered: Deferred[Response], receive: Callable[[Any], None]) -> Deferred[None]:
    """Pass an answer on; fires then, and also when the broker is gone."""
    return answered.addCallback(receive).addErrback(_ignore_gone)


def _ignore_answer(answer: object) -> None:
    """UpdateMetadata fails only for a controller that was replaced."""


def _ignore_gone(failure: Failure) -> None:
    failure.trap(ChannelClosedError)
