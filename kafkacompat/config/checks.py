"""Checks across properties, and of features that are not served yet.

Each check returns the sentence that rejects the configuration, or None.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from kafkacompat.config.broker_groups import read_broker_groups
from kafkacompat.config.properties import ConfigError
from kafkacompat.config.protocol_version import find_protocol_release
from kafkacompat.config.topic_defaults import find_broker_topic_value

if TYPE_CHECKING:
    from kafkacompat.config.readable import ReadableConfig


CONSUMER_ASSIGNORS: Mapping[str, str] = {
    "uniform": "uniform",
    "range": "range",
    "org.apache.kafka.coordinator.group.assignor.UniformAssignor": "uniform",
    "org.apache.kafka.coordinator.group.assignor.RangeAssignor": "range",
}
"""The values of group.consumer.assignors: the name of an assignor, or its class in Kafka."""


def check_config(config: ReadableConfig) -> None:
    """Raise ConfigError with the first sentence that rejects *config*."""
    for find_objection in CHECKS:
        if sentence := find_objection(config):
            raise ConfigError(sentence)


def _check_control_plane(config: ReadableConfig) -> str | None:
    name = config.value("control.plane.listener.name")
    if not name:
        return None
    return f"control.plane.listener.name={name} is not served: remove it, and orders come by the inter-broker listener"


def _check_inter_broker_protocol(config: ReadableConfig) -> str | None:
    text = config.string("inter.broker.protocol.version")
    if find_protocol_release(text) is not None:
        return None
    return f"inter.broker.protocol.version={text} is no release from 2.8 on: write it as 3.9 or 2.8-IV1"


def needs_broker_id(config: ReadableConfig) -> bool:
    """Return whether the broker has no id and receives one from ZooKeeper."""
    if not config.value("zookeeper.connect") or not config.value("broker.id.generation.enable"):
        return False
    return config.value("node.id") in (None, -1)


def _check_node_id(config: ReadableConfig) -> str | None:
    if needs_broker_id(config):
        return None
    if config.value("node.id") is None:
        return "node.id is not set: give the node a number of 0 or more"
    if config.int("node.id") != config.int("broker.id"):
        return f"broker.id={config.int('broker.id')} is not node.id={config.int('node.id')}: set one of them only"
    number = config.int("node.id")
    return None if number >= 0 else f"broker.id={number} is not valid: it takes a whole number of 0 or more"


def _check_roles(config: ReadableConfig) -> str | None:
    roles = config.list("process.roles")
    if len(roles) == 2:
        return None
    return f"process.roles={roles[0]} is not served yet: a node is both, so set process.roles=broker,controller"


def _check_quorum(config: ReadableConfig) -> str | None:
    voters = [voter.partition("@")[0] for voter in config.list("controller.quorum.voters")]
    if voters and voters != [str(config.int("node.id"))]:
        return (
            f"controller.quorum.voters names the nodes {', '.join(voters)}: only a single node is served so far,"
            f" so name node {config.int('node.id')} alone"
        )
    servers = config.list("controller.quorum.bootstrap.servers")
    if len(servers) > 1:
        return (
            f"controller.quorum.bootstrap.servers={','.join(servers)} names {len(servers)} controllers:"
            " only a single node is served so far, so name one"
        )
    return None


AUTHORIZERS = (
    "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "kafka.security.authorizer.AclAuthorizer",
    "kafka.security.auth.SimpleAclAuthorizer",
)
"""The values of authorizer.class.name: Kafka's authorizer with KRaft, with ZooKeeper, and with ZooKeeper before Kafka 2.4."""


def _check_authorizer(config: ReadableConfig) -> str | None:
    name = config.string("authorizer.class.name")
    if name and name not in AUTHORIZERS:
        return f"authorizer.class.name={name} is not served: it takes {AUTHORIZERS[0]} or {AUTHORIZERS[1]}"
    path = config.value("kafkacompat.audit.log")
    if path and not name:
        advice = f"set authorizer.class.name={AUTHORIZERS[0]}, or remove it"
        return f"kafkacompat.audit.log={path} has no effect without an authorizer: {advice}"
    if not path and config.value("kafkacompat.audit.log.allowed"):
        return "kafkacompat.audit.log.allowed=true has no effect without kafkacompat.audit.log: name a file"
    return None


def _check_super_users(config: ReadableConfig) -> str | None:
    for user in config.string("super.users").split(";"):
        kind, colon, name = user.strip().partition(":")
        if user.strip() and not (kind and colon and name):
            return f"super.users={config.string('super.users')} is not valid: it takes the form User:alice;User:bob"
    return None


def _check_queued_bytes(config: ReadableConfig) -> str | None:
    queued, frame = config.int("queued.max.request.bytes"), config.int("socket.request.max.bytes")
    if queued <= 0 or queued >= frame:
        return None
    return f"queued.max.request.bytes={queued} is not valid: it takes {frame} (socket.request.max.bytes) or more, or -1"


def _check_cordoned_directories(config: ReadableConfig) -> str | None:
    unknown = [path for path in config.cordoned_log_dirs if path not in config.log_dirs]
    if not unknown:
        return None
    return f"cordoned.log.dirs={unknown[0]} is not valid: it takes some of {', '.join(config.log_dirs)}, or * alone"


def _check_log_times(config: ReadableConfig) -> str | None:
    for topic_config, name, least in (("segment.ms", "log.roll.ms", 1), ("segment.jitter.ms", "log.roll.jitter.ms", 0)):
        value = find_broker_topic_value(config, topic_config)
        assert isinstance(value, int)
        if value < least:
            return f"{name}={value} is not valid: it takes a whole number of {least} or more"
    if find_broker_topic_value(config, "retention.ms") == 0:
        return "log.retention.ms=0 is not valid: it takes a whole number of 1 or more, or -1"
    return None


def _check_assignors(config: ReadableConfig) -> str | None:
    unknown = [name for name in config.list("group.consumer.assignors") if name not in CONSUMER_ASSIGNORS]
    if not unknown:
        return None
    return f"group.consumer.assignors={unknown[0]} is not served: it takes some of uniform, range"


def _check_broker_groups(config: ReadableConfig) -> str | None:
    try:
        read_broker_groups(config)
    except ConfigError as problem:
        return str(problem)
    return None


CHECKS: tuple[Callable[[ReadableConfig], str | None], ...] = (
    _check_control_plane,
    _check_inter_broker_protocol,
    _check_node_id,
    _check_roles,
    _check_quorum,
    _check_authorizer,
    _check_super_users,
    _check_queued_bytes,
    _check_cordoned_directories,
    _check_log_times,
    _check_assignors,
    _check_broker_groups,
)


def check_inter_broker_listener(config: ReadableConfig) -> None:
    """Raise ConfigError for an inter.broker.listener.name that names no listener, or that is set beside a protocol."""
    name = config.optional_string("inter.broker.listener.name")
    if name is None:
        protocol = config.string("security.inter.broker.protocol")
        is_served = any(listener.protocol == protocol for listener in config.listeners)
        if "security.inter.broker.protocol" in config.given and not is_served:
            raise ConfigError(f"security.inter.broker.protocol={protocol} is not valid: no listener has this protocol")
        return
    if "security.inter.broker.protocol" in config.given:
        raise ConfigError("inter.broker.listener.name and security.inter.broker.protocol exclude each other: set one")
    names = [listener.name for listener in config.listeners]
    if name.upper() not in names:
        raise ConfigError(f"inter.broker.listener.name={name} is not valid: it takes one of {', '.join(names)}")


def read_required_listeners(config: ReadableConfig, between_brokers: str | None) -> frozenset[str]:
    """Return the listeners that serve only clients of instances; *between_brokers* cannot be one.

    Raises ConfigError for a name that is no such listener.
    """
    option = "kafkacompat.instances.required.listeners"
    names = {listener.name for listener in config.listeners} - {between_brokers}
    required = frozenset(name.upper() for name in config.list(option))
    for name in required - names:
        takes = f"listeners other than the one between brokers: {', '.join(sorted(names)) or 'there are none'}"
        raise ConfigError(f"{option} is not valid at {name!r}: it takes {takes}")
    return required


def check_listener_properties(config: ReadableConfig) -> None:
    """Raise ConfigError for a property of one listener whose value is not valid."""
    for name, text in config.given.items():
        row = config.row(name)
        if row is not None and row.name != name:
            row._replace(name=name).parse(text)
