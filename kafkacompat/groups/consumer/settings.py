"""The settings of consumer groups: the broker's properties, and the configs of single groups."""

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
class BoundedNumber:
    """A number that a group may configure between ``least`` and ``most``."""

    default: int
    least: int
    most: int


@dataclass(frozen=True)
class ConsumerGroupSettings:
    """The properties ``group.consumer.*`` by their names in snake case, with Kafka's defaults.

    ``is_served`` is False if group.coordinator.rebalance.protocols does not name consumer groups. ``assignment_interval_ms`` may
    change while the broker runs. The first of ``assignors`` is the default. ``patterns_refresh_least_ms`` is a constant of
    Kafka's, not a property.
    """

    is_served: bool = True
    session_timeout_ms: BoundedNumber = BoundedNumber(45_000, 45_000, 60_000)
    heartbeat_interval_ms: BoundedNumber = BoundedNumber(5_000, 5_000, 15_000)
    assignment_interval_ms: Callable[[], BoundedNumber] = lambda: BoundedNumber(1_000, 0, 15_000)
    max_size: int = 2_147_483_647
    classic_max_size: int = 2_147_483_647
    assignors: tuple[str, ...] = ("uniform", "range")
    migration_policy: str = "BIDIRECTIONAL"
    regex_refresh_interval_ms: int = 600_000
    patterns_refresh_least_ms: int = 10_000

    @classmethod
    def from_config(cls, config: BrokerConfig, current: Callable[[], BrokerConfig]) -> ConsumerGroupSettings:
        """Read the properties of one broker. *current* returns them as they are when it is called."""
        return cls(
            is_served="consumer" in config.list("group.coordinator.rebalance.protocols"),
            session_timeout_ms=_read_bounded(
                config,
                "group.consumer.session.timeout.ms",
                "group.consumer.min.session.timeout.ms",
                "group.consumer.max.session.timeout.ms",
            ),
            heartbeat_interval_ms=_read_bounded(
                config,
                "group.consumer.heartbeat.interval.ms",
                "group.consumer.min.heartbeat.interval.ms",
                "group.consumer.max.heartbeat.interval.ms",
            ),
            assignment_interval_ms=lambda: _read_bounded(
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
        """Whether a classic group with members may become a consumer group."""
        return self.migration_policy in UPGRADE_POLICIES

    @property
    def may_downgrade(self) -> bool:
        """Whether a consumer group with members may become a classic group."""
        return self.migration_policy in DOWNGRADE_POLICIES

    @property
    def accepts_classic_members(self) -> bool:
        """Whether members of the classic protocol may join a consumer group."""
        return self.migration_policy != DISABLED_POLICY


def _read_bounded(config: BrokerConfig, *names: str) -> BoundedNumber:
    return BoundedNumber(*(config.int(name) for name in names))


class GroupConfigs:
    """The settings of single groups: the group's own config, cut to the broker's bounds, else the broker's default."""

    def __init__(self, settings: ConsumerGroupSettings, metadata: ImageHolder) -> None:
        self._settings = settings
        self._metadata = metadata

    def session_timeout_ms(self, group_id: str) -> int:
        """Return the session timeout of the group's members."""
        return self._read_number(group_id, "consumer.session.timeout.ms", self._settings.session_timeout_ms)

    def heartbeat_interval_ms(self, group_id: str) -> int:
        """Return the interval at which the group's members have to send heartbeats."""
        return self._read_number(group_id, "consumer.heartbeat.interval.ms", self._settings.heartbeat_interval_ms)

    def assignment_interval_ms(self, group_id: str) -> int:
        """Return the minimum time between two computations of targets."""
        return self._read_number(group_id, "consumer.assignment.interval.ms", self._settings.assignment_interval_ms())

    def _read_number(self, group_id: str, name: str, bounded: BoundedNumber) -> int:
        text = self._metadata.image.config(ResourceType.GROUP, group_id).get(name)
        return bounded.default if text is None else min(max(int(text), bounded.least), bounded.most)
