"""Changes of configurations while the broker runs, by Kafka's rules: set, delete, append and subtract."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from enum import IntEnum
from typing import NamedTuple

from kafkacompat.config import PROPERTIES, TOPIC_CONFIGS, BrokerConfig, ConfigError, Property
from kafkacompat.config.broker_groups import GROUPS, check_instance_groups, read_broker_groups
from kafkacompat.config.dynamic import check_broker_configs, check_change_size, check_listeners
from kafkacompat.config.instances import (
    INSTANCE_PROPERTIES,
    LONG_NAME_CONFIG,
    MAX_INSTANCE_VALUE_LENGTH,
    Instance,
    read_instance,
)
from kafkacompat.config.resources import (
    GROUP_CONFIGS,
    InvalidRequestError,
    ResourceType,
    check_client_metrics_configs,
    check_group_configs,
)
from kafkacompat.config.topics import WHITELISTS, check_topic_configs
from kafkacompat.config.values import format_value
from kafkacompat.metadata.draft import MetadataDraft
from kafkacompat.metadata.effective import config_in_effect, effective_config
from kafkacompat.metadata.instance_limits import FindInstance, check_topic_configs_of, find_no_instance
from kafkacompat.metadata.topic_names import check_topic_name
from kafkacompat.wire import entities
from kafkacompat.wire.errors import ErrorCode, KafkaError

log = logging.getLogger(__name__)

MAX_VALUE_LENGTH = 32767


class ConfigOperationType(IntEnum):
    """A change of one config, by the numbers of IncrementalAlterConfigs."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class ConfigOperation(NamedTuple):
    """A change of one config with its value, which is None only for DELETE."""

    name: str
    operation: ConfigOperationType
    value: str | None


class ResourceChange(NamedTuple):
    """The changes of one resource's configuration; with ``replace`` they replace all configs set before."""

    resource: ResourceType
    name: str
    operations: Sequence[ConfigOperation]
    replace: bool = False


# Kafka refuses APPEND and SUBTRACT for a client metrics subscription.
_TABLES: Mapping[int, Mapping[str, Property]] = {
    ResourceType.TOPIC: TOPIC_CONFIGS,
    ResourceType.BROKER: PROPERTIES,
    ResourceType.GROUP: GROUP_CONFIGS,
    ResourceType.CLIENT_METRICS: {},
    ResourceType.INSTANCE: INSTANCE_PROPERTIES,
}


def alter_configs(
    draft: MetadataDraft,
    config: BrokerConfig,
    change: ResourceChange,
    find_instance: FindInstance = find_no_instance,
) -> None:
    """Change one resource's configuration.

    *find_instance* returns the instance of a topic, whose limits apply. Raises KafkaError (INVALID_CONFIG, INVALID_REQUEST,
    INVALID_TOPIC_EXCEPTION, POLICY_VIOLATION, UNKNOWN_TOPIC_OR_PARTITION); the draft is unchanged then.
    """
    resource, name = change.resource, change.name
    _check_resource_name(resource, name)
    configs = dict(draft.configs.get((resource, name), {}))
    if change.replace:
        # A topic keeps the name that the clients of its instance know.
        configs = {option: text for option, text in configs.items() if option == LONG_NAME_CONFIG}
    for operation in change.operations:
        _apply_operation(configs, resource, operation)
    _check_configs(draft, config, resource, name, configs)
    if resource == ResourceType.TOPIC and name not in draft.topics:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist.")
    if resource == ResourceType.TOPIC:
        instance = find_instance(name)
        if instance is not None:
            check_topic_configs_of(instance, configs, draft.configs.get((resource, name), {}))
    draft.put_config((resource, name), configs)


def _check_resource_name(resource: ResourceType, name: str) -> None:
    if resource == ResourceType.BROKER:
        # Handlers check that the client has sent the request to that broker.
        if name and not (name.isascii() and name.isdigit()):
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"'{name}' is not the id of a broker")
    elif not name:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"A {resource.name.lower().replace('_', ' ')} resource needs a name"
        )
    elif resource == ResourceType.TOPIC:
        check_topic_name(name)


def _apply_operation(configs: dict[str, str], resource: ResourceType, change: ConfigOperation) -> None:
    if change.operation == ConfigOperationType.DELETE:
        configs.pop(change.name, None)
        return
    if change.value is None:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"{change.name} needs a value")
    value = change.value
    if change.operation != ConfigOperationType.SET:
        value = _change_list(configs, resource, change, value)
    is_long = resource == ResourceType.INSTANCE or change.name in WHITELISTS
    most = MAX_INSTANCE_VALUE_LENGTH if is_long else MAX_VALUE_LENGTH
    if len(value) > most:
        reason = f"the value of {change.name} has {len(value)} characters, more than {most}"
        raise KafkaError(ErrorCode.INVALID_CONFIG, reason)
    configs[change.name] = value


def _change_list(configs: dict[str, str], resource: ResourceType, change: ConfigOperation, value: str) -> str:
    """Add elements to a list or remove them; a config that is not set starts from its own default."""
    known = _TABLES[resource].get(change.name)
    if known is None or known.kind != "list":
        reason = f"{change.name} is not a list, so nothing can be appended or subtracted"
        raise KafkaError(ErrorCode.INVALID_CONFIG, reason)
    current = configs.get(change.name, format_value(known.default_value) or "")
    items = [item for item in current.split(",") if item]
    given = value.split(",")
    if change.operation == ConfigOperationType.APPEND:
        present = set(items)
        return ",".join([*items, *dict.fromkeys(item for item in given if item not in present)])
    # An element that stands several times goes as often as the request names it, the first ones first.
    subtracted = Counter(given)
    kept = []
    for item in items:
        subtracted[item] -= 1
        if subtracted[item] < 0:
            kept.append(item)
    return ",".join(kept)


def _check_configs(
    draft: MetadataDraft, config: BrokerConfig, resource: ResourceType, name: str, configs: Mapping[str, str]
) -> None:
    code = ErrorCode.INVALID_CONFIG
    try:
        if resource == ResourceType.TOPIC:
            changed = _leave_out_known_whitelists(configs, draft.configs.get((resource, name), {}))
            check_topic_configs(config_in_effect(config, draft.configs), changed)
        elif resource == ResourceType.GROUP:
            check_group_configs(config, configs)
        elif resource == ResourceType.CLIENT_METRICS:
            check_client_metrics_configs(configs)
        elif resource == ResourceType.INSTANCE:
            _check_instance(draft, config, name, configs)
        else:
            # Kafka returns no INVALID_CONFIG for brokers: its clients recognise a bad value by this code.
            code = ErrorCode.INVALID_REQUEST
            check_broker_configs(configs, per_broker=bool(name))
            after = effective_config(config, {**draft.configs, (resource, name): configs})
            before = config_in_effect(config, draft.configs)
            check_listeners(config, before, after)
            _check_sasl(after)
            check_change_size(before, after)
            _check_certificates(before, after)
            _check_groups(draft, before, after)
    except InvalidRequestError as problem:
        raise KafkaError(ErrorCode.INVALID_REQUEST, str(problem)) from problem
    except ConfigError as problem:
        raise KafkaError(code, str(problem)) from problem


def _leave_out_known_whitelists(configs: Mapping[str, str], known: Mapping[str, str]) -> Mapping[str, str]:
    """Return a topic's configs without the whitelists that stay: reading one takes milliseconds."""
    return {option: text for option, text in configs.items() if option not in WHITELISTS or known.get(option) != text}


def _check_instance(draft: MetadataDraft, config: BrokerConfig, name: str, configs: Mapping[str, str]) -> None:
    """Raise ConfigError for properties that an instance may not have, or may not get any more."""
    # A broker without instances does not pay for this module.
    from kafkacompat.config.instance_checks import check_instance, check_instance_change

    before = draft.configs.get((ResourceType.INSTANCE, name), {})
    others = {
        other: given
        for (kind, other), given in draft.configs.items()
        if kind == ResourceType.INSTANCE and other != name
    }
    check_instance_change(name, before, configs, draft.topics)
    check_instance(name, configs, others, _list_own_addresses(config))
    instance = read_instance(name, configs)
    in_effect = config_in_effect(config, draft.configs)
    if configs:
        check_topic_configs(in_effect, instance.default_topic_configs)
        _check_brokers_users(config, instance)
    if configs.get("placement.group") != before.get("placement.group"):
        check_instance_groups(instance, read_broker_groups(in_effect))


def _check_brokers_users(config: BrokerConfig, instance: Instance) -> None:
    """Raise ConfigError if a user of the brokers themselves would become a user of an instance, and be locked out."""
    for user, purpose in _list_brokers_users(config):
        if instance.owns(entities.USER, user):
            raise ConfigError(
                f"User:{user} is {purpose} of the brokers and cannot belong to the instance {instance.name}:"
                " choose another name.prefix, or leave it out of user.names"
            )


def _list_brokers_users(config: BrokerConfig) -> Iterator[tuple[str, str]]:
    """Yield the super users and the user by which brokers log in at each other, each with its purpose."""
    # A broker without instances does not pay for these modules.
    from kafkacompat.security.acls.authorizer import parse_super_users

    for principal in parse_super_users(config.string("super.users")):
        yield principal.name, "in super.users"
    listener = config.inter_broker_listener
    if config.optional_string("zookeeper.connect") and listener.has_sasl:
        from kafkacompat.security.sasl.client import ClientLogin
        from kafkacompat.security.sasl.login_settings import read_login_settings

        login = read_login_settings(config, listener.name, config.string("sasl.mechanism.inter.broker.protocol"))
        if isinstance(login, ClientLogin):
            yield login.username, "the login"


def _list_own_addresses(config: BrokerConfig) -> list[tuple[str, int]]:
    """List the hosts and ports that no listener of an instance may have, and names of the broker with port 0."""
    http = [] if config.http_address is None else [config.http_address]
    bound = [(listener.host, listener.port) for listener in config.listeners]
    # The advertised port may be that of a proxy, so that only the name is taken.
    advertised = [(host, 0) for host, _ in config.advertised_listeners.values()]
    return [*bound, *advertised, *http]


def _check_groups(draft: MetadataDraft, before: BrokerConfig, after: BrokerConfig) -> None:
    """Raise ConfigError if an instance names a group of brokers that the change removes."""
    groups = read_broker_groups(after)
    if groups == read_broker_groups(before):
        return
    for (kind, name), given in draft.configs.items():
        if kind == ResourceType.INSTANCE:
            for group in read_instance(name, given).list("placement.group"):
                if group not in groups:
                    raise ConfigError(
                        f"{GROUPS} has to keep the group {group}, which the instance {name} lives in: "
                        "move the instance to another group first"
                    )
    for group, node_ids in groups.items():
        if unknown := sorted(node_ids.difference(draft.brokers)):
            names = ", ".join(map(str, unknown))
            log.warning("The group %s has brokers that are not registered: %s", group, names)


def _check_sasl(config: BrokerConfig) -> None:
    """Raise ConfigError for login modules that cannot be used."""
    names = [listener.name for listener in config.listeners if listener.has_sasl]
    if names:
        # A broker without such a listener does not pay for these modules.
        from kafkacompat.security.sasl.settings import read_sasl_settings

        for name in names:
            read_sasl_settings(config, name)


def _check_certificates(before: BrokerConfig, after: BrokerConfig) -> None:
    """Check the certificates that a change brings; a broker without TLS does not import what that takes."""
    if any(listener.has_tls for listener in after.listeners):
        from kafkacompat.security.tls.listeners import check_tls_change

        check_tls_change(before, after)
