"""The nasty topics as the trial uses them, and what happens to a topic once a client has read all of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from kafkacompat.testing.nasty import ExpectedRecord, NastyTopic, RetentionJump, UncleanTruncation

ALL, COMMITTED = "all", "committed"
"""Isolation levels, as the drivers of the matrix name them."""


class Scene(NamedTuple):
    """A topic that a client reads. ``change`` alters it after that, and returns the records that must follow."""

    topic: NastyTopic
    change: Callable[[], tuple[ExpectedRecord, ...]] | None = None


@dataclass(frozen=True)
class Shape:
    """A nasty topic: how it is made, in words for the page, and which isolation levels read different records."""

    name: str
    make: Callable[[Any, str], Scene]
    isolations: tuple[str, ...] = (ALL,)
    is_shared: bool = False
    """Whether all clients read the same topic, because making it takes long; it gets no further record then."""


def _make_plain(name: str, **arguments: int) -> Callable[[Any, str], Scene]:
    return lambda nasty, topic: Scene(getattr(nasty, name)(topic, **arguments))


def _make_retention_jump(nasty: Any, topic: str) -> Scene:
    jumping: RetentionJump = nasty.retention_jump(topic, records=400)
    # The client is at the end of the log, and the log start overtakes it.
    return Scene(jumping.before, lambda: jumping.overtake().read_uncommitted)


def _make_unclean_truncation(nasty: Any, topic: str) -> Scene:
    losing: UncleanTruncation = nasty.unclean_truncation(topic)

    def change() -> tuple[ExpectedRecord, ...]:
        after = losing.truncate()
        return tuple(record for record in after.read_uncommitted if record not in losing.before.read_uncommitted)

    return Scene(losing.before, change)


def _plain(name: str, *isolations: str, is_shared: bool = False, **arguments: int) -> Shape:
    return Shape(name, _make_plain(name, **arguments), isolations or (ALL,), is_shared)


SHAPES: dict[str, Shape] = {
    shape.name: shape
    for shape in (
        _plain("transaction_gaps", ALL, COMMITTED),
        _plain("aborted_tail", ALL, COMMITTED),
        _plain("compacted_holes"),
        _plain("empty_batch", ALL, COMMITTED),
        Shape("retention_jump", _make_retention_jump),
        _plain("out_of_order_timestamps"),
        _plain("mixed_timestamp_types"),
        _plain("mixed_formats"),
        _plain("largest_record"),
        Shape("unclean_truncation", _make_unclean_truncation),
        _plain("many_partitions", is_shared=True),
    )
}
