"""Removing deleted instances once their grace period has passed, on the controller's broker.

The removal goes on after a crash at any point, as the instance itself goes last: topics, then groups with their offsets, then users,
quotas, access rules, tokens and configs, and at last the properties. Transactional ids have no records that could be deleted one by
one: they expire after transactional.id.expiration.ms.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from twisted.internet.defer import Deferred

from kafkacompat.client.errors import RequestFailedError
from kafkacompat.groups.offsets_topic import OFFSETS_TOPIC
from kafkacompat.metadata.image import NO_LEADER, list_changed_configs
from kafkacompat.tenancy.removal import find_due, find_due_instance, list_topics, remove_portion
from kafkacompat.timers import Clock, now_ms
from kafkacompat.wire import entities
from kafkacompat.wire.apis.delete_groups import DeleteGroupsRequest
from kafkacompat.wire.apis.list_groups import ListGroupsRequest
from kafkacompat.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from kafkacompat.config.instances import Instance
    from kafkacompat.groups.coordinator import GroupCoordinator
    from kafkacompat.metadata.administration import Administration
    from kafkacompat.metadata.image import Configs, ImageHolder, MetadataImage
    from kafkacompat.timers import DelayedCall
    from kafkacompat.transactions.broker_queue import SendRequest

log = logging.getLogger(__name__)

RETRY_S = 10.0
"""Time until a removal that could not go on is tried again: a group may have members until their sessions end."""
LONGEST_WAIT_S = 3600.0
"""Longest time until the time of day is read again, which may be set."""
DELETE_AT = "delete.at.ms"
TOPICS_A_PORTION = 50
GROUPS_A_PORTION = 100
REQUEST_TIMEOUT_S = 30.0
PURPOSE = "removal of instances"


class InstanceRemoval:
    """Removes the instances that are due. ``send`` sends requests to the other brokers, None on a single node.

    ``find_groups`` returns this broker's coordinator of groups.
    """

    def __init__(
        self,
        node_id: int,
        clock: Clock,
        metadata: ImageHolder,
        controller: Administration,
        find_groups: Callable[[], GroupCoordinator],
        send: SendRequest | None = None,
    ) -> None:
        self._node_id = node_id
        self._clock = clock
        self._metadata = metadata
        self._controller = controller
        self._find_groups = find_groups
        self._send = send
        self._is_started = self._is_removing = False
        self._timer: DelayedCall | None = None
        self._configs: Configs = {}
        self._controller_id = -1

    def start(self) -> None:
        """Begin: follow the metadata."""
        self._is_started = True
        self._metadata.watch(self._follow)

    def stop(self) -> None:
        """End; a removal under way stops after its present step."""
        self._is_started = False
        self._stop_timer()

    def _stop_timer(self) -> None:
        if self._timer is not None and self._timer.active():
            self._timer.cancel()
        self._timer = None

    def _follow(self, image: MetadataImage) -> None:
        if not self._is_started:
            return
        configs = self._configs, image.configs
        concerns_removal = image.controller_id != self._controller_id or any(
            DELETE_AT in known.get(key, {}) for key in list_changed_configs(*configs) for known in configs
        )
        self._configs, self._controller_id = image.configs, image.controller_id
        if concerns_removal:
            self._schedule()

    def _schedule(self, at_least_s: float = 0.0) -> None:
        """Let the first removal begin when it is due, on the controller's broker."""
        self._stop_timer()
        image = self._metadata.image
        if not self._is_started or self._is_removing or image.controller_id != self._node_id:
            return
        waits_ms = [wait_ms for _, wait_ms in find_due(image, now_ms(self._clock))]
        if waits_ms:
            wait_s = min(max(min(waits_ms) / 1000, at_least_s), LONGEST_WAIT_S)
            self._timer = self._clock.callLater(wait_s, self._begin)

    def _begin(self) -> None:
        self._is_removing = True
        Deferred.fromCoroutine(self._remove_all()).addBoth(self._end)

    def _end(self, outcome: Any) -> None:
        self._is_removing = False
        problem = getattr(outcome, "value", None)
        if problem is None:
            self._schedule()
            return
        if not isinstance(problem, KafkaError) or problem.code != ErrorCode.NOT_CONTROLLER:
            is_expected = isinstance(problem, (KafkaError, RequestFailedError))
            log.warning(
                "The removal of an instance is tried again in %g s: %s",
                RETRY_S,
                problem,
                exc_info=None if is_expected else problem,
            )
        self._schedule(RETRY_S)

    async def _remove_all(self) -> None:
        now = now_ms(self._clock)
        for name in [name for name, wait_ms in find_due(self._controller.committed, now) if wait_ms <= 0]:
            await self._remove(name)

    async def _remove(self, name: str) -> None:
        """Remove one instance; raises KafkaError and RequestFailedError, and goes on at the next attempt."""
        log.info("Removing instance %s", name)
        while (instance := self._find_due(name)) is not None:
            if await self._delete_topics(instance):
                continue
            await self._delete_groups(instance)
            if await self._remove_metadata(name):
                log.info("Removed instance %s", name)
                return

    def _find_due(self, name: str) -> Instance | None:
        """Return the instance unless it is gone, restored, or this broker stops."""
        if not self._is_started:
            return None
        return find_due_instance(self._controller.committed, name, now_ms(self._clock))

    async def _delete_topics(self, instance: Instance) -> bool:
        """Delete some topics; return whether there were any."""
        image = self._controller.committed
        names = list_topics(image, instance)[:TOPICS_A_PORTION]
        if not names:
            return False
        outcomes = await self._controller.delete_topics([image.topics[name].topic_id for name in names])
        for outcome in outcomes:
            if outcome is not None and outcome.code != ErrorCode.UNKNOWN_TOPIC_ID:
                raise outcome
        kept = next((name for name in names if name in self._controller.committed.topics), None)
        if kept is not None:
            raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, f"the topic {kept} waits for a broker that is down, or moves")
        return True

    async def _remove_metadata(self, name: str) -> bool:
        """Remove a portion of the metadata; return whether nothing is left. Its changes are any that a draft can hold."""
        return await self._controller.change_tokens(lambda draft, _: remove_portion(draft, name, now_ms(self._clock)))

    # Groups

    async def _delete_groups(self, instance: Instance) -> None:
        """Delete the groups of an instance on all brokers; raises KafkaError while some groups have no coordinator."""
        self._check_coordinators()
        for node_id in sorted(self._metadata.image.brokers):
            group_ids = [
                group_id for group_id in await self._list_groups(node_id) if instance.owns(entities.GROUP, group_id)
            ]
            for first in range(0, len(group_ids), GROUPS_A_PORTION):
                codes = await self._delete_portion(node_id, group_ids[first : first + GROUPS_A_PORTION])
                for group_id, code in codes:
                    if code not in (ErrorCode.NONE, ErrorCode.GROUP_ID_NOT_FOUND):
                        raise KafkaError(code, f"the group {group_id} cannot be deleted yet: {code.name}")

    def _check_coordinators(self) -> None:
        """Raise KafkaError if a part of the groups is out of reach: a new instance of the same name would find them."""
        topic = self._controller.committed.topics.get(OFFSETS_TOPIC)
        lost = (
            ()
            if topic is None
            else (partition.partition for partition in topic.partitions if partition.leader == NO_LEADER)
        )
        for index in lost:
            reason = f"the groups of {OFFSETS_TOPIC}-{index} wait for a broker that is down"
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, reason)

    async def _list_groups(self, node_id: int) -> list[str]:
        if node_id == self._node_id or self._send is None:
            groups = self._find_groups().list((), ())
            if isinstance(groups, ErrorCode):
                raise KafkaError(groups, "the groups cannot be listed yet")
        else:
            response = await self._send(node_id, PURPOSE, ListGroupsRequest(), REQUEST_TIMEOUT_S)
            if response.error_code:
                raise KafkaError(ErrorCode(response.error_code), f"broker {node_id} does not list its groups")
            groups = response.groups
        return [group.group_id for group in groups]

    async def _delete_portion(self, node_id: int, group_ids: list[str]) -> Iterable[tuple[str, ErrorCode]]:
        if node_id == self._node_id or self._send is None:
            groups = self._find_groups()
            return [(group_id, await _wait_for(groups.delete(group_id))) for group_id in group_ids]
        request = DeleteGroupsRequest(groups_names=group_ids)
        response = await self._send(node_id, PURPOSE, request, REQUEST_TIMEOUT_S)
        return [(result.group_id, ErrorCode(result.error_code)) for result in response.results]


async def _wait_for(answer: ErrorCode | Deferred[ErrorCode]) -> ErrorCode:
    return await answer if isinstance(answer, Deferred) else answer
