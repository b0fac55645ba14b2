"""The checks of properties that change while the broker runs: which may change, for which brokers, and how far at once."""

from __future__ import annotations

import re
from collections.abc import Mapping

from kafkacompat.config.broker import PROPERTIES, BrokerConfig
from kafkacompat.config.broker_groups import GROUPS, MAX_BROKERS
from kafkacompat.config.listeners import LISTENER_PROPERTY_PATTERN, base_property_name, listener_property_name
from kafkacompat.config.properties import ConfigError, Property
from kafkacompat.config.resources import check_group_defaults
from kafkacompat.config.topic_defaults import find_broker_topic_value

_KEYS_AND_TRUST = re.compile(r"ssl\.(keystore|truststore)\..*|ssl\.key\.password")
# A listener's properties belong to one broker, except these.
_OF_ALL_BROKERS = ("max.connections", "max.connection.creation.rate", "num.network.threads")
# One change may at most halve or double a number of threads.
_THREADS = (
    "background.threads",
    "log.cleaner.threads",
    "num.io.threads",
    "num.network.threads",
    "num.recovery.threads.per.data.dir",
    "num.replica.fetchers",
    "remote.log.manager.copier.thread.pool.size",
    "remote.log.manager.expiration.thread.pool.size",
    "remote.log.manager.follower.thread.pool.size",
    "remote.log.reader.threads",
)
_CONNECTIONS = ("max.connections", "max.connection.creation.rate")
_HOST_COUNT = re.compile(r"\s*[^\s,]+:\s*[0-9]{1,9}\s*")
_LEAST_BUFFER_BYTES = 1024 * 1024
_LIKE_WHOLE_PARTITION = -2
"""The value of log.local.retention.* that keeps a partition's local part as long as the whole."""


def find_property(name: str) -> Property | None:
    """Return the row of a property, or of the property that *name* sets for one listener."""
    return PROPERTIES.get(base_property_name(name))


def check_broker_configs(changes: Mapping[str, str], *, per_broker: bool) -> None:
    """Raise ConfigError for a change that no running broker accepts, whatever its other properties are."""
    for name, text in changes.items():
        known = PROPERTIES.get(name)
        if known is not None and not known.dynamic:
            raise ConfigError(f"{name} cannot be changed while the broker runs: set it in server.properties")
        if _KEYS_AND_TRUST.fullmatch(name):
            raise ConfigError(f"{name} can only be changed for one listener: name it listener.name.<listener>.{name}")
        if per_broker and name in (GROUPS, MAX_BROKERS):
            raise ConfigError(f"{name} is the same for all brokers: change it without an id")
        if _is_per_broker(name) and not per_broker:
            raise ConfigError(f"{name} can only be changed for one broker: name its id")
        row = find_property(name)
        if row is not None:
            _refuse_fixed(name, row)
            row._replace(name=name).parse(text)


def _refuse_fixed(name: str, row: Property) -> None:
    """Raise ConfigError for a property by which a running broker could be made to fetch from another address or file."""
    if name != row.name and not row.dynamic and row.name.startswith(("sasl.oauthbearer.", "sasl.server.")):
        raise ConfigError(f"{name} cannot be changed while the broker runs: set it in server.properties")


def _is_per_broker(name: str) -> bool:
    match = LISTENER_PROPERTY_PATTERN.fullmatch(name)
    if match is not None:
        return match[1] not in _OF_ALL_BROKERS
    return name in PROPERTIES and PROPERTIES[name].per_broker


def check_listeners(static: BrokerConfig, before: BrokerConfig, after: BrokerConfig) -> None:
    """Check a change of listeners.

    Raises ConfigError when a listener of the properties file that clients know is missing, and when a bound listener changes.
    """
    bound = {listener.name: listener for listener in before.listeners}
    names = {listener.name for listener in after.listeners}
    for name in static.advertised_listeners or [listener.name for listener in static.listeners]:
        if name not in names:
            reason = f"{name} of server.properties is advertised to clients, so it must stay"
            raise ConfigError(f"listeners={','.join(after.list('listeners'))} is not valid: {reason}")
    for listener in after.listeners:
        if listener.name in bound and listener.protocol != bound[listener.name].protocol:
            reason = f"{listener.name} is bound already with {bound[listener.name].protocol}: give it another name"
            raise ConfigError(
                f"listener.security.protocol.map={listener.name}:{listener.protocol} is not valid: {reason}"
            )
        if listener.name in bound and listener.emulate != bound[listener.name].emulate:
            reason = f"{listener.name} is bound already: set it in server.properties, or for a new listener"
            raise ConfigError(f"kafkacompat.listener.name.{listener.name}.emulate cannot be changed: {reason}")


def check_change_size(before: BrokerConfig, after: BrokerConfig) -> None:
    """Raise ConfigError for a step that is too large, or for values that contradict each other."""
    for name in _THREADS:
        _check_threads(name, before.int(name), after.int(name))
    check_group_defaults(after)
    _check_connections(after)
    _check_connections_of_listeners(before, after)
    _check_cleaner(after)
    for topic_config in ("retention.ms", "retention.bytes"):
        _check_local(after, f"log.local.{topic_config}", topic_config)


def _check_threads(name: str, before: int, after: int) -> None:
    least, most = max(before // 2, 1), before * 2
    if after != before and not least <= after <= most:
        raise ConfigError(f"{name}={after} is not valid: from {before} it goes to {least} to {most} at once")


def _check_connections(config: BrokerConfig) -> None:
    for name in _CONNECTIONS:
        if config.int(name) == 0:
            raise ConfigError(f"{name}=0 is not valid: it takes a whole number of 1 or more")
    overrides = config.string("max.connections.per.ip.overrides")
    if overrides and not all(map(_HOST_COUNT.fullmatch, overrides.split(","))):
        raise ConfigError(f"max.connections.per.ip.overrides={overrides} is not valid: it takes a list of host:count")
    if config.int("max.connections.per.ip") == 0 and not overrides:
        raise ConfigError("max.connections.per.ip=0 is not valid: it takes 1 or more without exceptions for addresses")


def _check_connections_of_listeners(before: BrokerConfig, after: BrokerConfig) -> None:
    """Check changed values only, as Kafka's acceptors do: a properties file may close a listener with 0."""
    for listener in before.listeners:
        for name in _CONNECTIONS:
            if after.listener_value(listener.name, name) == 0 != before.listener_value(listener.name, name):
                given = listener_property_name(listener.name, name)
                raise ConfigError(f"{given}=0 is not valid: it takes a whole number of 1 or more")


def _check_cleaner(config: BrokerConfig) -> None:
    size, threads = config.int("log.cleaner.dedupe.buffer.size"), max(config.int("log.cleaner.threads"), 1)
    if size // threads <= _LEAST_BUFFER_BYTES:
        words = f"it takes more than {threads * _LEAST_BUFFER_BYTES}, a mebibyte a thread"
        raise ConfigError(f"log.cleaner.dedupe.buffer.size={size} is not valid: {words}")


def _check_local(config: BrokerConfig, name: str, topic_config: str) -> None:
    local, whole = config.int(name), find_broker_topic_value(config, topic_config)
    assert isinstance(whole, int)
    if whole >= 0 and local != _LIKE_WHOLE_PARTITION and not 0 <= local <= whole:
        raise ConfigError(
            f"{name}={local} is not valid: it takes {_LIKE_WHOLE_PARTITION} or 0 to {whole}, what is kept in all"
        )
