"""A client's view of the cluster: brokers, topics and leaders, by Metadata requests and by what other responses say (KIP-951)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from random import Random
from typing import Any, NamedTuple

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from kafkacompat.backoff import Backoff
from kafkacompat.client.errors import RequestFailedError
from kafkacompat.client.settings import BrokerAddress
from kafkacompat.history.events import HistoryPartition
from kafkacompat.timers import Clock, DelayedCall
from kafkacompat.wire.apis.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from tests.simulation.clients.settings import ClientSettings

NO_TOPIC_ID = bytes(16)
FAILED_FOR_S = 1.0
"""A broker that did not answer is not asked for so long, if there is another."""


class KnownLeader(NamedTuple):
    """The leader of a partition in an epoch; ``node_id`` is -1 where the partition has none."""

    node_id: int
    epoch: int


class ClusterView:
    """Brokers, topics and leaders as the client knows them.

    As in the Java client, a response with an older leader epoch than the known one changes nothing, unless the topic has another id. A
    client asks one of the brokers that it knows; if none of them answers, it asks the bootstrap brokers again (KIP-899). ``listeners`` are
    called after each response.
    """

    def __init__(
        self,
        clock: Clock,
        rng: Random,
        bootstrap: Sequence[tuple[str, int]],
        settings: ClientSettings,
        send: Callable[[BrokerAddress, MetadataRequest], Deferred[Any]],
    ) -> None:
        self._clock = clock
        self._rng = rng
        self._bootstrap = [BrokerAddress(-2 - number, *address) for number, address in enumerate(bootstrap)]
        self._settings = settings
        self._send = send
        self._backoff = Backoff(settings.retry_backoff_s, settings.max_retry_backoff_s, rng)
        self._brokers: dict[int, BrokerAddress] = {}
        self._failed_at: dict[int, float] = {}
        self._topics: dict[str, None] = {}
        self._ids: dict[str, bytes] = {}
        self._leaders: dict[HistoryPartition, KnownLeader] = {}
        self._waiting: list[Deferred[None]] = []
        self._timer: DelayedCall | None = None
        self._is_asking = False
        self._is_wanted_again = False
        self._next_attempt_at = clock.seconds()
        self.listeners: list[Callable[[], None]] = []

    # What is known

    def find_leader(self, place: HistoryPartition) -> KnownLeader | None:
        """Return a partition's leader, if there is a known broker that leads it."""
        leader = self._leaders.get(place)
        return leader if leader is not None and leader.node_id in self._brokers else None

    def find_epoch(self, place: HistoryPartition) -> int:
        """Return the leader epoch that is known of a partition; -1 without one."""
        leader = self._leaders.get(place)
        return -1 if leader is None else leader.epoch

    def broker(self, node_id: int) -> BrokerAddress:
        """Return the address of a known broker; raises KeyError."""
        return self._brokers[node_id]

    def topic_id(self, topic: str) -> bytes:
        """Return the id of a topic; zeros if it is not known."""
        return self._ids.get(topic, NO_TOPIC_ID)

    def partitions(self, topic: str) -> list[HistoryPartition]:
        """Return the known partitions of a topic, in their order."""
        return sorted(place for place in self._leaders if place.topic == topic)

    def choose_broker(self) -> BrokerAddress:
        """Choose a broker to ask: one that has not failed just now; if all have, a bootstrap broker."""
        since = self._clock.seconds() - FAILED_FOR_S
        for brokers in (list(self._brokers.values()), self._bootstrap):
            working = [broker for broker in brokers if self._failed_at.get(broker.node_id, since) <= since]
            if working:
                return self._rng.choice(working)
        return self._rng.choice(self._bootstrap)

    # What clients note

    def note_failure(self, broker: BrokerAddress) -> None:
        """A broker did not answer: the metadata may be old."""
        self._failed_at[broker.node_id] = self._clock.seconds()
        self.request_update()

    def note_leader(self, place: HistoryPartition, leader: Any, endpoints: Iterable[Any]) -> None:
        """A response names a partition's present leader, and its address."""
        if leader.leader_id < 0 or leader.leader_epoch <= self.find_epoch(place):
            return
        for endpoint in endpoints:
            if endpoint.node_id == leader.leader_id:
                self._brokers[endpoint.node_id] = BrokerAddress(endpoint.node_id, endpoint.host, endpoint.port)
        if leader.leader_id in self._brokers:
            self._leaders[place] = KnownLeader(leader.leader_id, leader.leader_epoch)

    # Updates

    def watch(self, topics: Iterable[str]) -> None:
        """Follow some topics."""
        added = [topic for topic in topics if topic not in self._topics]
        if added:
            self._topics.update(dict.fromkeys(added))
            self.request_update()

    def request_update(self) -> None:
        """Ask for metadata as soon as the back-off allows."""
        self._schedule(max(0.0, self._next_attempt_at - self._clock.seconds()))

    def updated(self) -> Deferred[None]:
        """Request an update; return a Deferred that fires after the next response."""
        waiting: Deferred[None] = Deferred()
        self._waiting.append(waiting)
        self.request_update()
        return waiting

    def _schedule(self, delay_s: float) -> None:
        self._is_wanted_again |= self._is_asking
        if self._is_asking:
            return
        if self._timer is not None and self._timer.active():
            if self._timer.getTime() <= self._clock.seconds() + delay_s:
                return
            self._timer.cancel()
        self._timer = self._clock.callLater(delay_s, self._ask)

    def _ask(self) -> None:
        self._is_asking = True
        self._is_wanted_again = False
        broker = self.choose_broker()
        topics = [MetadataRequestTopic(name=topic) for topic in self._topics]
        request = MetadataRequest(topics=topics, allow_auto_topic_creation=False)
        self._send(broker, request).addCallbacks(self._receive, self._fail, errbackArgs=(broker,))

    def _fail(self, failure: Failure, broker: BrokerAddress) -> None:
        failure.trap(RequestFailedError)
        self._is_asking = False
        self._failed_at[broker.node_id] = self._clock.seconds()
        self._ask_again()

    def _ask_again(self) -> None:
        wait_s = self._backoff.next_s()
        self._next_attempt_at = self._clock.seconds() + wait_s
        self._schedule(wait_s)

    def _receive(self, response: MetadataResponse) -> None:
        self._is_asking = False
        if response.brokers:
            self._brokers = {
                broker.node_id: BrokerAddress(broker.node_id, broker.host, broker.port) for broker in response.brokers
            }
        is_complete = bool(response.brokers)
        for topic in response.topics:
            assert topic.name is not None
            is_complete &= self._note_topic(topic.name, topic)
        if is_complete:
            self._backoff.reset()
            self._next_attempt_at = self._clock.seconds() + self._settings.retry_backoff_s
            self._schedule(
                self._settings.retry_backoff_s if self._is_wanted_again else self._settings.metadata_max_age_s
            )
        else:
            self._ask_again()
        waiting, self._waiting = self._waiting, []
        for deferred in waiting:
            deferred.callback(None)
        for listener in list(self.listeners):
            listener()

    def _note_topic(self, name: str, topic: Any) -> bool:
        """Take over a topic; return whether all its partitions have leaders."""
        if topic.error_code:
            self._forget_topic(name)
            return False
        is_same = self._ids.get(name) == topic.topic_id
        if not is_same:
            self._forget_topic(name)
            self._ids[name] = topic.topic_id
        for partition in topic.partitions:
            place = HistoryPartition(name, partition.partition_index)
            if partition.leader_epoch >= self.find_epoch(place):
                self._leaders[place] = KnownLeader(partition.leader_id, partition.leader_epoch)
        return all(self.find_leader(place) is not None for place in self.partitions(name))

    def _forget_topic(self, name: str) -> None:
        self._ids.pop(name, None)
        for place in self.partitions(name):
            del self._leaders[place]
