"""The properties of brokers in tests, and those that a test gives."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kafkacompat.testing.errors import BrokerError
from kafkacompat.testing.security import SUPER_USER

MEMORY_FOLDER = "/memory"
"""The log directory of a broker in memory."""

TEST_PROPERTIES: Mapping[str, str] = {
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "100",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "replica.fetch.backoff.ms": "50",
    "kafkacompat.scrub.interval.ms": "-1",
}
"""What differs from Kafka's defaults, for brokers of tests: less waiting and fewer partitions of internal topics."""

INTERNAL_REPLICAS = (
    "offsets.topic.replication.factor",
    "transaction.state.log.replication.factor",
    "transaction.state.log.min.isr",
    "share.coordinator.state.topic.replication.factor",
    "share.coordinator.state.topic.min.isr",
)


def add_own_properties(secured: Mapping[str, object], own: Mapping[str, object]) -> dict[str, object]:
    """Return the properties that a test gives over those of `Security`, whose super users stay beside the test's.

    The helpers are a super user of every broker with access rules, as no rule is for them.
    """
    given = {**secured, **own}
    if "authorizer.class.name" in given:
        named = own.get("super.users", ())
        users = named if isinstance(named, list | tuple) else [str(named)]
        given["super.users"] = ";".join(filter(None, [*map(str, users), str(secured.get("super.users", SUPER_USER))]))
    return given


def build_properties(node_id: int, nodes: int, folder: str | None, given: Mapping[str, object]) -> dict[str, str]:
    """Return the properties of one of *nodes* brokers: *given* over the profile, as texts."""
    replicas = min(nodes, 3)
    return {
        **TEST_PROPERTIES,
        **{name: str(min(replicas, 2) if name.endswith("isr") else replicas) for name in INTERNAL_REPLICAS},
        "node.id": str(node_id),
        "log.dirs": folder or MEMORY_FOLDER,
        **{name: format_property(value) for name, value in given.items()},
    }


def check_free(given: Mapping[str, object], folder: str | None, *, in_cluster: bool) -> None:
    """Raise BrokerError for a property that `broker` or `cluster` sets itself, and for a folder that no property can name."""
    if folder is not None and "," in folder:
        raise BrokerError(f"folder={folder} has a comma, which separates the folders of log.dirs: name another folder")
    zookeeper = (
        "a cluster has a ZooKeeper in memory" if in_cluster else "cluster() starts brokers with a ZooKeeper in memory"
    )
    reasons = {"zookeeper.connect": zookeeper}
    if in_cluster:
        reasons |= dict.fromkeys(("node.id", "broker.id"), "the brokers of a cluster have the ids 1, 2, and so on")
    else:
        reasons["broker.id"] = "set node.id, its newer name"
    if folder is not None:
        reasons |= dict.fromkeys(("log.dirs", "log.dir"), f"the data are in folder={folder}")
    for name, reason in reasons.items():
        if name in given:
            raise BrokerError(f"{name}={given[name]} cannot be set: {reason}")


def read_properties(arguments: Mapping[str, object]) -> dict[str, object]:
    """Return keyword arguments as properties: ``num_partitions`` is ``num.partitions``."""
    return {name if "." in name else name.replace("_", "."): value for name, value in arguments.items()}


def read_instances(instances: Iterable[str] | Mapping[str, Mapping[str, object]]) -> dict[str, dict[str, str]]:
    """Return the properties of instances by name, as texts; raises BrokerError."""
    if isinstance(instances, str):
        raise BrokerError(f"instances={instances!r} is one text: give a list of names")
    given = instances if isinstance(instances, Mapping) else {name: {} for name in instances}
    return {
        name: {key: format_property(value) for key, value in read_properties(properties).items()}
        for name, properties in given.items()
    }


def format_property(value: object) -> str:
    """Return a value as a properties file has it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
