"""Fetch sessions by the table of KIP-227."""

from __future__ import annotations

from random import Random

import pytest

from kafkacompat.partitions.fetch_sessions import (
    EVICTION_MS,
    MAX_INSTANCE_SESSIONS,
    FetchContext,
    FetchSessions,
    WantedPartition,
)
from kafkacompat.wire.errors import ErrorCode, KafkaError
from kafkacompat.wire.primitives import MAX_INT32


def wanted(topic: str, partition: int = 0, offset: int = 0) -> WantedPartition:
    return WantedPartition(topic, partition, offset, 1000)


class World:
    def __init__(self, slots: int = 2) -> None:
        self.sessions = FetchSessions(slots, Random(1))

    def ask(
        self,
        session_id: int,
        epoch: int,
        partitions: list[WantedPartition],
        forgotten: list[tuple[str | bytes, int]] | None = None,
        *,
        by_topic_id: bool = False,
        now_ms: int = 0,
    ) -> FetchContext:
        return self.sessions.find_context(
            session_id, epoch, partitions, forgotten or [], by_topic_id=by_topic_id, now_ms=now_ms
        )


def refused(code: ErrorCode, world: World, *args: object, **kwargs: object) -> None:
    with pytest.raises(KafkaError) as caught:
        world.ask(*args, **kwargs)  # type: ignore[arg-type]
    assert caught.value.code == code


def test_without_a_session_the_list_is_what_is_read() -> None:
    context = World().ask(0, -1, [wanted("a")])
    assert (context.session_id, context.incremental) == (0, False)
    assert [partition.key for partition in context.wanted] == [("a", 0)]


def test_a_session_keeps_the_list_and_takes_changes() -> None:
    world = World()
    first = world.ask(0, 0, [wanted("a"), wanted("b")])
    assert first.session_id > 0
    second = world.ask(first.session_id, 1, [wanted("a", offset=5), wanted("c")], [("b", 0)])
    assert second.incremental
    assert [(partition.topic, partition.fetch_offset) for partition in second.wanted] == [("a", 5), ("c", 0)]
    assert [partition.topic for partition in world.ask(first.session_id, 2, []).wanted] == ["a", "c"]


def test_wrong_sessions_are_refused() -> None:
    world = World()
    session_id = world.ask(0, 0, [wanted("a")]).session_id
    refused(ErrorCode.FETCH_SESSION_ID_NOT_FOUND, world, session_id + 1, 1, [])
    refused(ErrorCode.INVALID_FETCH_SESSION_EPOCH, world, session_id, 2, [])
    refused(ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR, world, session_id, 1, [], by_topic_id=True)


def test_the_epoch_wraps_to_one() -> None:
    world = World()
    session = world.ask(0, 0, [wanted("a")]).session
    assert session is not None
    session.epoch = MAX_INT32
    world.ask(session.session_id, MAX_INT32, [])
    assert session.epoch == 1


def test_closing_forgets_the_session() -> None:
    world = World()
    session_id = world.ask(0, 0, [wanted("a")]).session_id
    assert world.ask(session_id, -1, [wanted("a")]).session_id == 0
    refused(ErrorCode.FETCH_SESSION_ID_NOT_FOUND, world, session_id, 1, [])


def test_a_full_cache_gives_no_session_until_one_was_idle_for_long() -> None:
    world = World(slots=1)
    first = world.ask(0, 0, [wanted("a")]).session_id
    assert world.ask(0, 0, [wanted("a")], now_ms=EVICTION_MS - 1).session_id == 0
    second = world.ask(0, 0, [wanted("a")], now_ms=EVICTION_MS).session_id
    assert second not in (0, first)
    assert len(world.sessions) == 1
    assert World(slots=0).ask(0, 0, [wanted("a")]).session_id == 0


def test_only_news_is_told() -> None:
    partition = wanted("a")

    def news(size_bytes: int = 0, error: bool = False, high_watermark: int = 3, log_start_offset: int = 0) -> bool:
        return partition.has_news(
            size_bytes=size_bytes, error=error, high_watermark=high_watermark, log_start_offset=log_start_offset
        )

    assert news()
    assert not news()
    assert news(size_bytes=1)
    assert news(high_watermark=4)
    assert news(high_watermark=4, log_start_offset=1)
    assert not news(high_watermark=4, log_start_offset=1)
    assert news(error=True, high_watermark=-1, log_start_offset=-1)
    assert news(high_watermark=4, log_start_offset=1)


def test_a_partition_that_got_data_goes_to_the_end() -> None:
    world = World()
    context = world.ask(0, 0, [wanted("a"), wanted("b")])
    assert context.session is not None
    context.session.move_to_end(("a", 0))
    assert [partition.topic for partition in world.ask(context.session_id, 1, []).wanted] == ["b", "a"]


def test_a_session_whose_last_partition_is_forgotten_is_closed() -> None:
    world = World()
    session_id = world.ask(0, 0, [wanted("a")]).session_id
    context = world.ask(session_id, 1, [], [("a", 0)])
    assert (context.session_id, context.wanted, context.incremental) == (0, [], False)
    assert len(world.sessions) == 0
    refused(ErrorCode.FETCH_SESSION_ID_NOT_FOUND, world, session_id, 2, [])


def test_data_for_a_partition_that_was_forgotten_meanwhile_does_not_bring_it_back() -> None:
    world = World()
    context = world.ask(0, 0, [wanted("a"), wanted("b")])
    assert context.session is not None
    world.ask(context.session_id, 1, [], [("a", 0)])
    context.session.move_to_end(("a", 0))
    assert [partition.topic for partition in world.ask(context.session_id, 2, []).wanted] == ["b"]


def test_an_instance_has_sessions_of_its_own_which_go_with_it() -> None:
    class View:
        pass

    sessions, shop, bank = FetchSessions(1000, Random(1)), View(), View()
    of_shop = sessions.of_instance(shop)
    assert sessions.of_instance(shop) is of_shop and sessions.of_instance(bank) is not of_shop
    for _ in range(2 * MAX_INSTANCE_SESSIONS):
        of_shop.find_context(0, 0, [WantedPartition("t", 0, 0, 1)], [], by_topic_id=False, now_ms=0)
    assert len(of_shop) == MAX_INSTANCE_SESSIONS and len(sessions) == 0
    # Others have room all the same.
    context = sessions.of_instance(bank).find_context(
        0, 0, [WantedPartition("t", 0, 0, 1)], [], by_topic_id=False, now_ms=0
    )
    assert context.session_id
    del shop
    another = View()
    assert len(sessions.of_instance(another)) == 0
