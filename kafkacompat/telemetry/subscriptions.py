"""What the cluster wants to know of which clients: the configs of the resources of type client-metrics."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from crc32c import crc32c

from kafkacompat.config.resources import CLIENT_METRICS_CONFIGS, ResourceType
from kafkacompat.metadata.image import MetadataImage
from kafkacompat.patterns import Pattern, PatternError

log = logging.getLogger(__name__)

ALL_METRICS = "*"
DEFAULT_INTERVAL_MS = 300_000

ClientProperties = Mapping[str, str]
"""The properties of a client by the names that ``match`` uses: client_id and so on."""


class Subscription(NamedTuple):
    """One resource: prefixes of metrics, an interval, and the patterns that a client's properties must match in full."""

    metrics: frozenset[str]
    interval_ms: int
    patterns: Mapping[str, Pattern | None]

    def matches(self, client: ClientProperties) -> bool:
        """Return whether a client is meant; a pattern that RE2 does not accept matches nothing."""
        return all(
            pattern is not None and pattern.matches(client.get(name, "")) for name, pattern in self.patterns.items()
        )


class ClientSubscription(NamedTuple):
    """What one client is to push; ``subscription_id`` changes with it."""

    metrics: tuple[str, ...]
    interval_ms: int
    subscription_id: int


class Subscriptions:
    """The subscriptions of an image; ``version`` grows when they change."""

    def __init__(self) -> None:
        self.version = 0
        self._image_version = -1
        self._configs: Mapping[str, Mapping[str, str]] = {}
        self._subscriptions: list[Subscription] = []

    def update(self, image: MetadataImage) -> None:
        """Read the subscriptions of an image, unless it is the last one."""
        if image.version == self._image_version:
            return
        self._image_version = image.version
        configs = {
            name: dict(own)
            for (kind, name), own in image.configs.items()
            if kind == ResourceType.CLIENT_METRICS and own
        }
        if configs != self._configs:
            self._configs = configs
            self._subscriptions = [_read_subscription(name, own) for name, own in configs.items()]
            self.version += 1

    def find(self, client: ClientProperties, instance_id: bytes) -> ClientSubscription:
        """Return what a client is to push: everything that a subscription that matches it wants, as often as any wants it."""
        matching = [subscription for subscription in self._subscriptions if subscription.matches(client)]
        metrics = sorted(set().union(*(subscription.metrics for subscription in matching)))
        if ALL_METRICS in metrics:
            metrics = [ALL_METRICS]
        interval_ms = min([DEFAULT_INTERVAL_MS, *(subscription.interval_ms for subscription in matching)])
        return ClientSubscription(tuple(metrics), interval_ms, _compute_id(metrics, interval_ms, instance_id))


def _compute_id(metrics: Iterable[str], interval_ms: int, instance_id: bytes) -> int:
    number = crc32c(f"{','.join(metrics)} {interval_ms}".encode())
    for start in range(0, len(instance_id), 4):
        number ^= int.from_bytes(instance_id[start : start + 4], "big")
    return number - (1 << 32) if number & 0x80000000 else number


def _read_subscription(name: str, configs: Mapping[str, str]) -> Subscription:
    values = {
        row.name: row.parse(configs[row.name]) if row.name in configs else row.default_value
        for row in CLIENT_METRICS_CONFIGS.values()
    }
    metrics, interval_ms, matches = values["metrics"], values["interval.ms"], values["match"]
    assert isinstance(metrics, tuple)
    assert isinstance(interval_ms, int)
    assert isinstance(matches, tuple)
    patterns = {}
    for entry in matches:
        property_name, _, text = entry.partition("=")
        patterns[property_name.strip()] = _read_pattern(name, text.strip())
    return Subscription(frozenset(metrics), interval_ms, patterns)


def _read_pattern(name: str, text: str) -> Pattern | None:
    try:
        return Pattern(text)
    except PatternError as problem:
        log.warning(
            "The client metrics subscription %s matches no client: %s is no pattern of RE2: %s", name, text, problem
        )
        return None
