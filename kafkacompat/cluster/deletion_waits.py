"""Clients that wait for the deletion of topics."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from twisted.internet.defer import Deferred

from kafkacompat.cluster.decisions.situation import DeletionProgress
from kafkacompat.wire.errors import KafkaError


class DeletionWait(NamedTuple):
    """One client's wait for one topic.

    ``started`` fires when the brokers have been requested to delete their replicas, so that no metadata has the topic. ``settled``
    fires when those that are alive have answered. A replica that is away is deleted when its broker is back: nobody waits for it.
    """

    started: Deferred[None]
    settled: Deferred[None]


class DeletionWaits:
    """The waits for deletions of one controller; both Deferreds of each fail with KafkaError after `fail`."""

    def __init__(self) -> None:
        self._waits: dict[str, list[DeletionWait]] = {}

    def add(self, topic: str) -> DeletionWait:
        """Begin to wait for a topic, whose deletion `notice` has not seen yet."""
        wait = DeletionWait(Deferred(), Deferred())
        for deferred in wait:
            # A client may have given up.
            deferred.addErrback(_keep_quiet)
        self._waits.setdefault(topic, []).append(wait)
        return wait

    def notice(self, deletions: Mapping[str, DeletionProgress]) -> None:
        """Fire what has come true by the progress of the *deletions*; a topic that is not among them is gone."""
        for topic, waits in list(self._waits.items()):
            progress = deletions.get(topic, DeletionProgress(has_started=True))
            if not progress.has_started:
                continue
            is_settled = not progress.pending
            if is_settled:
                del self._waits[topic]
            for wait in waits:
                _fire(wait.started)
                if is_settled:
                    _fire(wait.settled)

    def fail(self, problem: KafkaError) -> None:
        """End all waits."""
        waits, self._waits = self._waits, {}
        for wait in (wait for of_topic in waits.values() for wait in of_topic):
            for deferred in wait:
                if not deferred.called:
                    deferred.errback(problem)


def _fire(deferred: Deferred[None]) -> None:
    if not deferred.called:
        deferred.callback(None)


def _keep_quiet(_: object) -> None:
    """The client learns of it from the controller."""
