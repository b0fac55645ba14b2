"""What administrators do with instances, as changes of properties: the command line, HTTP and files build the same ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from random import Random

from kafkacompat.config.instances import ACTIVE, DELETING, Instance
from kafkacompat.config.networks import NOBODY
from kafkacompat.config.properties import ConfigError
from kafkacompat.metadata.config_changes import ConfigOperation, ConfigOperationType
from kafkacompat.wire.primitives import format_uuid, new_uuid

DEFAULT_GRACE_MS = 7 * 24 * 3_600_000
MAX_GRACE_MS = 3650 * 24 * 3_600_000
SECRET_BYTES = 32
OWN_PROPERTIES = frozenset({"cluster.id", "secret", "state", "delete.at.ms"})
"""Properties that only these functions set."""

SET, DELETE = ConfigOperationType.SET, ConfigOperationType.DELETE
APPEND, SUBTRACT = ConfigOperationType.APPEND, ConfigOperationType.SUBTRACT

Changes = list[ConfigOperation]


def plan_creation(given: Mapping[str, str], rng: Random) -> Changes:
    """Return the changes that create an instance with the properties *given*: *rng* draws its cluster id and its secret."""
    identity = {"cluster.id": format_uuid(new_uuid(rng)), "secret": rng.randbytes(SECRET_BYTES).hex()}
    return [ConfigOperation(name, SET, value) for name, value in {**identity, **_check_given(given)}.items()]


def plan_alteration(added: Mapping[str, str], deleted: Iterable[str]) -> Changes:
    """Return the changes that set and delete properties; raises ConfigError for a property that has commands of its own."""
    names = dict.fromkeys(deleted)
    both = next((name for name in added if name in names), None)
    if both is not None:
        raise ConfigError(f"{both} cannot be set and deleted at the same time")
    _check_given({**added, **dict.fromkeys(names, "")})
    sets = [ConfigOperation(name, SET, value) for name, value in added.items()]
    return [*sets, *(ConfigOperation(name, DELETE, None) for name in names)]


def _check_given(given: Mapping[str, str]) -> Mapping[str, str]:
    for name in given:
        if name in OWN_PROPERTIES:
            raise ConfigError(f"{name} is not set by hand: create, delete and restore set it")
    return given


def plan_deletion(now_ms: int, grace_ms: int) -> Changes:
    """Return the changes that stop an instance, and let its data go *grace_ms* after *now_ms*; raises ConfigError."""
    if not 0 <= grace_ms <= MAX_GRACE_MS:
        raise ConfigError(f"a grace period of {grace_ms} ms is not valid: it takes 0 to {MAX_GRACE_MS}")
    return [
        ConfigOperation("state", SET, DELETING),
        ConfigOperation("delete.at.ms", SET, str(now_ms + grace_ms)),
    ]


def plan_restoration(instance: Instance, now_ms: int) -> Changes:
    """Return the changes that let a deleting instance serve clients again.

    Raises ConfigError for an active instance, and for one whose grace period has passed: some of its data may be gone.
    """
    if instance.is_active:
        raise ConfigError(f"the instance {instance.name} is active: there is nothing to restore")
    if 0 <= instance.int("delete.at.ms") <= now_ms:
        raise ConfigError(f"the grace period of the instance {instance.name} has passed: its data are being removed")
    return [ConfigOperation("state", SET, ACTIVE), ConfigOperation("delete.at.ms", DELETE, None)]


def plan_whitelist(action: str, networks: Sequence[str], current: Sequence[str]) -> Changes:
    """Return the change of a whitelist that has *current* networks: *action* is add, remove or set.

    Set without networks lets all connect. Raises ConfigError for a network to remove that is not there, and for the last one.
    """
    if action == "set" or (action == "add" and list(current) == [NOBODY]):
        text = ",".join(networks)
        return [ConfigOperation("whitelist", SET if text else DELETE, text or None)]
    if action == "add":
        return [ConfigOperation("whitelist", APPEND, ",".join(networks))]
    known = set(current)
    missing = next((network for network in networks if network not in known), None)
    if missing is not None:
        raise ConfigError(f"the whitelist has no network {missing}")
    if not known - set(networks):
        raise ConfigError(
            "without its last network a whitelist lets all connect: set it to none, or delete the property"
        )
    return [ConfigOperation("whitelist", SUBTRACT, ",".join(networks))]


def plan_adoption(names: Mapping[str, Iterable[str]]) -> Changes:
    """Return the changes that give an instance existing things; *names* has their physical names by property."""
    lists = {option: ",".join(f"{name}:{name}" for name in adopted) for option, adopted in names.items()}
    return [ConfigOperation(option, APPEND, text) for option, text in lists.items() if text]


def plan_difference(given: Mapping[str, str], wanted: Mapping[str, str]) -> Changes:
    """Return the changes from the properties *given* to those *wanted*, leaving `OWN_PROPERTIES` alone."""
    changed = {name: value for name, value in wanted.items() if given.get(name) != value}
    gone = [name for name in given if name not in wanted and name not in OWN_PROPERTIES]
    return plan_alteration(changed, gone)
