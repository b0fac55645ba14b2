"""What consumer groups obey: the broker's properties, and what was set for single groups."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kafkacompat.config.checks import CONSUMER_ASSIGNORS
from kafkacompat.config.resources import ResourceType

if TYPE_CHECKING:
    from kafkacompat.config import BrokerConfig
    from kafkacompat.metadata.image import ImageHolder

UPGRADE_POLICIES = ("UPGRADE", "BIDIRECTIONAL")
DOWNGRADE_POLICIES = ("DOWNGRADE", "BIDIRECTIONAL")
DISABLED_POLICY = "DISABLED"


@dataclass(frozen=True)
class Bounded:
    """A number that a group may set for itself, within bounds."""

    default: int
    least: int
    most: int


@dataclass(frozen=True)
class ConsumerGroupSettings:
    """Properties of ``group.consumer.`` by their names in snake case, with Kafka's defaults.

    ``is_served`` says whether there are such groups at all (group.coordinator.rebalance.protocols). ``assignment_interval_ms`` may change while the broker runs. ``assignors`` has the default one first;
    ``patterns_refresh_least_ms`` is Kafka's own bound, and no property.
    """

    is_served: bool = True
    session_timeout_ms: Bounded = Bounded(45_000, 45_000, 60_000)
    heartbeat_interval_ms: Bounded = Bounded(5_000, 5_000, 15_000)
    assignment_interval_ms: Callable[[], Bounded] = lambda: Bounded(1_000, 0, 15_000)
    max_size: int = 2_147_483_647
    classic_max_size: int = 2_147_483_647
    assignors: tuple[str, ...] = ("uniform", "range")
    migration_policy: str = "BIDIRECTIONAL"
    regex_refresh_interval_ms: int = 600_000
    patterns_refresh_least_ms: int = 10_000

    @classmethod
    def from_config(cls, config: BrokerConfig, current: Callable[[], BrokerConfig]) -> ConsumerGroupSettings:
        """Read the properties of one broker, of which *current* is what they are while it runs."""
        return cls(
            is_served="consumer" in config.list("group.coordinator.rebalance.protocols"),
            session_timeout_ms=_numbers(
                config,
                "group.consumer.session.timeout.ms",
                "group.consumer.min.session.timeout.ms",
                "group.consumer.max.session.timeout.ms",
            ),
            heartbeat_interval_ms=_numbers(
                config,
                "group.consumer.heartbeat.interval.ms",
                "group.consumer.min.heartbeat.interval.ms",
                "group.consumer.max.heartbeat.interval.ms",
            ),
            assignment_interval_ms=lambda: _numbers(
                current(),
                "group.consumer.assignment.interval.ms",
                "group.consumer.min.assignment.interval.ms",
                "group.consumer.max.assignment.interval.ms",
            ),
            max_size=config.int("group.consumer.max.size"),
            classic_max_size=config.int("group.max.size"),
            assignors=tuple(CONSUMER_ASSIGNORS[name] for name in config.list("group.consumer.assignors")),
            migration_policy=config.string("group.consumer.migration.policy").upper(),
            regex_refresh_interval_ms=config.int("group.consumer.regex.refresh.interval.ms"),
        )

    @property
    def may_upgrade(self) -> bool:
        """Whether a classic group may become a consumer group while it has members."""
        return self.migration_policy in UPGRADE_POLICIES

    @property
    def may_downgrade(self) -> bool:
        """Whether a consumer group may become a classic one while it has members."""
        return self.migration_policy in DOWNGRADE_POLICIES

    @property
    def lets_classic_members_in(self) -> bool:
        """Whether a consumer group takes members of the classic protocol."""
        return self.migration_policy != DISABLED_POLICY


def _numbers(config: BrokerConfig, *names: str) -> Bounded:
    return Bounded(*(config.int(name) for name in names))


class GroupConfigs:
    """What holds for one group: its own config within the broker's bounds, else the broker's."""

    def __init__(self, settings: ConsumerGroupSettings, metadata: ImageHolder) -> None:
        self._settings = settings
        self._metadata = metadata

    def session_timeout_ms(self, group_id: str) -> int:
        """How long a silent member stays."""
        return self._number(group_id, "consumer.session.timeout.ms", self._settings.session_timeout_ms)

    def heartbeat_interval_ms(self, group_id: str) -> int:
        """How often members are to send heartbeats."""
        return self._number(group_id, "consumer.heartbeat.interval.ms", self._settings.heartbeat_interval_ms)

    def assignment_interval_ms(self, group_id: str) -> int:
        """The least time between two assignments."""
        return self._number(group_id, "consumer.assignment.interval.ms", self._settings.assignment_interval_ms())

    def _number(self, group_id: str, name: str, bounded: Bounded) -> int:
        text = self._metadata.image.config(ResourceType.GROUP, group_id).get(name)
        return bounded.default if text is None else min(max(int(text), bounded.least), bounded.most)
