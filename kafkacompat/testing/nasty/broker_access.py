"""The brokers of a fixture, one or several: creating and configuring topics, and finding leaders and coordinators.

Everything here runs in the reactor's thread, by `Kafka.call`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from twisted.internet.task import deferLater

from kafkacompat.config.resources import ResourceType
from kafkacompat.metadata.config_changes import ConfigOperation, ConfigOperationType, ResourceChange
from kafkacompat.metadata.topic_changes import NewTopic
from kafkacompat.testing.nasty.description import NastyTopicError
from kafkacompat.timers import now_ms
from kafkacompat.wire.errors import KafkaError

if TYPE_CHECKING:
    from kafkacompat.broker import Broker
    from kafkacompat.timers import Clock

POLL_S = 0.01
PATIENCE_S = 30.0

Found = TypeVar("Found")


class Kafka(Protocol):
    """What nasty topics need of a fixture's broker or cluster."""

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Run *function* in the reactor's thread, wait for its Deferred or coroutine, and return the result."""


class BrokerAccess:
    """The running brokers; ``list_brokers`` is called each time, since a cluster stops and starts brokers."""

    def __init__(self, list_brokers: Callable[[], Sequence[Broker]]) -> None:
        self._list_brokers = list_brokers

    @property
    def brokers(self) -> Sequence[Broker]:
        """The brokers that run now, at least one."""
        return self._list_brokers()

    @property
    def clock(self) -> Clock:
        """The clock of the brokers."""
        return self.brokers[0].housekeeping.clock

    def now_ms(self) -> int:
        """Return the brokers' time in ms since 1970."""
        return now_ms(self.clock)

    async def wait_for(self, find: Callable[[], Found | None], subject: str) -> Found:
        """Wait until *find* returns a value other than None, and return it. Raises NastyTopicError after PATIENCE_S."""
        deadline = self.clock.seconds() + PATIENCE_S
        while (value := find()) is None:
            if self.clock.seconds() > deadline:
                raise NastyTopicError(f"waited {PATIENCE_S:.0f} s in vain for {subject}; see the log of the broker")
            await self.pause()
        return value

    async def pause(self) -> None:
        """Wait a moment before the next attempt."""
        await deferLater(self.clock, POLL_S)  # type: ignore[arg-type]

    async def create_topic(self, name: str, partitions: int = 1, replicas: int = 1, **configs: str) -> None:
        """Create a topic, and wait until each partition has a leader; *configs* have `_` for `.`."""
        wanted = NewTopic(name, partitions, replicas, configs=_with_dots(configs))
        (outcome,) = await self.brokers[0].controller.create_topics([wanted])
        if isinstance(outcome, KafkaError):
            raise NastyTopicError(f"topic '{name}' cannot be created: {outcome.detail or outcome.code.name}")
        await self.wait_for(
            lambda: all(self._find_leading(name, index) for index in range(partitions)) or None,
            f"the leaders of '{name}'",
        )

    async def alter_topic(self, name: str, **configs: str) -> None:
        """Set configs of a topic, and wait until its partitions have them."""
        wanted = _with_dots(configs).items()
        operations = [ConfigOperation(config, ConfigOperationType.SET, value) for config, value in wanted]
        (outcome,) = await self.brokers[0].controller.alter_configs(
            [ResourceChange(ResourceType.TOPIC, name, operations)]
        )
        if isinstance(outcome, KafkaError):
            raise NastyTopicError(f"topic '{name}' cannot be altered: {outcome.detail or outcome.code.name}")
        leader = await self.find_broker_of(name, 0)
        await self.wait_for(
            lambda: wanted <= leader.metadata.image.config(ResourceType.TOPIC, name).items() or None,
            f"a change of the configs of '{name}'",
        )

    async def find_broker_of(self, topic: str, index: int) -> Broker:
        """Return the broker that leads a partition."""
        return await self.wait_for(lambda: self._find_leading(topic, index), f"a leader of {topic}-{index}")

    def _find_leading(self, topic: str, index: int) -> Broker | None:
        for broker in self.brokers:
            try:
                if broker.replica_manager.find(topic, index).is_leader:
                    return broker
            except KafkaError:
                continue
        return None


def _with_dots(configs: Mapping[str, str]) -> dict[str, str]:
    return {name.replace("_", "."): value for name, value in configs.items()}
