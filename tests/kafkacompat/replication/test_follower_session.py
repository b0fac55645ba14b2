"""The follower's side of fetch sessions, against the leader's side."""

from __future__ import annotations

from random import Random

import pytest

from kafkacompat.partitions.fetch_sessions import FetchContext, FetchSessions, WantedPartition
from kafkacompat.replication.follower import PartitionKey
from kafkacompat.replication.follower_session import FetchPosition, FollowerSession
from kafkacompat.wire.apis.fetch import FetchableTopicResponse, FetchRequest, FetchResponse, FetchTopic
from kafkacompat.wire.errors import ErrorCode, KafkaError
from kafkacompat.wire.primitives import MAX_INT32
from tests.kafkacompat.replication.replica_log import topic_id_of


def at(offset: int, topic: str = "t") -> FetchPosition:
    return FetchPosition(topic_id_of(topic), offset, 0, 1, -1)


class World:
    """A follower that wants some partitions, and its leader."""

    def __init__(self, *, slots: int = 10, by_topic_id: bool = True) -> None:
        self.sessions = FetchSessions(slots, Random(1))
        self.session = FollowerSession(lambda _key: 1000)
        self.wanted: dict[PartitionKey, FetchPosition] = {}
        self.by_topic_id = by_topic_id

    def want(self, key: PartitionKey, position: FetchPosition) -> None:
        self.wanted[key] = position
        self.session.note_change(key)

    def drop(self, key: PartitionKey) -> None:
        del self.wanted[key]
        self.session.note_change(key)

    def build(self) -> FetchRequest:
        request = FetchRequest()
        for _ in self.session.fill(request, self.wanted, self.wanted.get):
            pass
        return request

    def read(self, request: FetchRequest) -> FetchContext:
        """Return what the leader understands."""
        wanted = [
            WantedPartition(self.name(topic), partition.partition, partition.fetch_offset, 1000)
            for topic in request.topics
            for partition in topic.partitions
        ]
        forgotten = [
            (topic.topic_id if self.by_topic_id else topic.topic, index)
            for topic in request.forgotten_topics_data
            for index in topic.partitions
        ]
        return self.sessions.find_context(
            request.session_id, request.session_epoch, wanted, forgotten, by_topic_id=self.by_topic_id, now_ms=0
        )

    def name(self, topic: FetchTopic) -> str | bytes:
        return topic.topic_id if self.by_topic_id else topic.topic

    def fetch(self) -> dict[PartitionKey, int]:
        """Send a request; return the offsets that the leader reads, in its order."""
        context = self.read(self.build())
        assert self.session.accept(FetchResponse(session_id=context.session_id))
        names = {topic_id_of(topic): topic for topic, _ in self.wanted}
        return {
            (wanted.topic if isinstance(wanted.topic, str) else names[wanted.topic], wanted.partition): (
                wanted.fetch_offset
            )
            for wanted in context.wanted
        }

    def sent(self, request: FetchRequest) -> list[tuple[PartitionKey, int]]:
        return [
            ((topic.topic, partition.partition), partition.fetch_offset)
            for topic in request.topics
            for partition in topic.partitions
        ]


def make_world(**kwargs: bool) -> World:
    world = World(**kwargs)
    world.want(("t", 0), at(5))
    world.want(("t", 1), at(6))
    assert world.fetch() == {("t", 0): 5, ("t", 1): 6}
    return world


def test_the_first_request_names_everything_and_asks_for_a_session() -> None:
    world = World()
    world.want(("t", 0), at(5))
    world.want(("u", 0), at(7, "u"))
    world.want(("t", 1), at(6))
    request = world.build()
    assert (request.session_id, request.session_epoch) == (0, 0)
    # The order counts when a response is full, so topics may be named twice.
    assert [topic.topic for topic in request.topics] == ["t", "u", "t"]
    assert world.sent(request) == [(("t", 0), 5), (("u", 0), 7), (("t", 1), 6)]


@pytest.mark.parametrize("by_topic_id", [False, True])
def test_later_requests_name_changes_only(by_topic_id: bool) -> None:
    world = make_world(by_topic_id=by_topic_id)
    world.want(("t", 0), at(8))
    world.session.note_change(("t", 1))
    request = world.build()
    assert world.sent(request) == [(("t", 0), 8)]
    assert request.session_epoch == 1
    context = world.read(request)
    assert [wanted.fetch_offset for wanted in context.wanted] == [8, 6]


@pytest.mark.parametrize("by_topic_id", [False, True])
def test_partitions_that_are_no_longer_wanted_are_forgotten(by_topic_id: bool) -> None:
    world = make_world(by_topic_id=by_topic_id)
    world.drop(("t", 0))
    assert world.fetch() == {("t", 1): 6}
    world.want(("t", 0), at(5))
    assert world.fetch() == {("t", 1): 6, ("t", 0): 5}


@pytest.mark.parametrize("by_topic_id", [False, True])
def test_a_topic_of_the_same_name_is_forgotten_before_it_is_added(by_topic_id: bool) -> None:
    world = make_world(by_topic_id=by_topic_id)
    world.want(("t", 0), FetchPosition(b"\x07" * 16, 0, 0, 1, -1))
    request = world.build()
    assert world.sent(request) == []
    assert [(topic.topic_id, topic.partitions) for topic in request.forgotten_topics_data] == [(topic_id_of("t"), [0])]
    assert world.session.accept(FetchResponse(session_id=world.read(request).session_id))
    assert world.sent(world.build()) == [(("t", 0), 0)]


@pytest.mark.parametrize("by_topic_id", [False, True])
def test_what_nobody_heard_is_said_again(by_topic_id: bool) -> None:
    world = make_world(by_topic_id=by_topic_id)
    world.session.note_unheard(("t", 0))
    assert world.fetch() == {("t", 1): 6}
    assert world.fetch() == {("t", 1): 6, ("t", 0): 5}


def test_a_leader_without_room_is_asked_for_everything_each_time() -> None:
    world = World(slots=0)
    world.want(("t", 0), at(5))
    world.want(("t", 1), at(6))
    for _ in range(3):
        request = world.build()
        assert (request.session_id, request.session_epoch) == (0, 0)
        assert len(world.sent(request)) == 2
        assert world.session.accept(FetchResponse(session_id=world.read(request).session_id))


def test_a_lost_session_is_begun_again() -> None:
    world = make_world()
    world.sessions = FetchSessions(10, Random(2))
    with pytest.raises(KafkaError) as lost:
        world.fetch()
    assert lost.value.code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert not world.session.accept(FetchResponse(error_code=lost.value.code))
    request = world.build()
    assert (request.session_id, request.session_epoch) == (0, 0)
    assert len(world.read(request).wanted) == 2


def test_after_another_error_the_old_session_is_ended() -> None:
    world = make_world()
    session_id = world.session._id
    assert not world.session.accept(FetchResponse(error_code=ErrorCode.INVALID_FETCH_SESSION_EPOCH))
    request = world.build()
    assert (request.session_id, request.session_epoch) == (session_id, 0)
    world.read(request)
    assert len(world.sessions) == 1


def test_a_session_that_became_empty_is_closed() -> None:
    world = make_world()
    world.drop(("t", 0))
    world.drop(("t", 1))
    assert world.fetch() == {}
    world.want(("t", 0), at(9))
    assert world.session.is_full
    assert world.fetch() == {("t", 0): 9}


def test_the_epoch_wraps_to_one() -> None:
    world = make_world()
    world.session._epoch = MAX_INT32
    for session in world.sessions:
        session.epoch = MAX_INT32
    world.fetch()
    assert world.session._epoch == 1
    world.fetch()


def test_topics_are_found_by_name_and_by_id() -> None:
    world = make_world()
    assert world.session.find_topic(FetchableTopicResponse(topic_id=topic_id_of("t"))) == "t"
    assert world.session.find_topic(FetchableTopicResponse(topic="t")) == "t"
    assert world.session.find_topic(FetchableTopicResponse(topic_id=topic_id_of("other"))) == ""
