"""Topics that clients of an instance create: the instance's counts, and the names of topics with a short physical name."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from kafkacompat.config.instances import LONG_NAME_CONFIG
from kafkacompat.handlers.controller_apis import build_refusal
from kafkacompat.handlers.tenants.configs import HIDDEN_CONFIGS
from kafkacompat.handlers.tenants.whitelist_room import TOO_LONG_WHITELISTS, WhitelistRoom
from kafkacompat.metadata.topic_changes import BROKER_DEFAULT, NewTopic
from kafkacompat.wire.apis.create_topics import CreatableTopicConfig
from kafkacompat.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from kafkacompat.handlers.context import RequestContext, Services
    from kafkacompat.tenancy.tenant_view import TenantView
    from kafkacompat.wire.schema import Response

STEP_TOPICS = 64
NO_CONFIG = "kafkacompat.unknown"
"""Takes the place of hidden configs in requests of clients: there is no such config."""


def complete_topic(new: NewTopic, tenant: TenantView) -> NewTopic:
    """Return a topic that Metadata creates, with the counts of its instance and the name that clients know."""
    instance = tenant.instance
    name = tenant.names.find_long_name(new.name)
    return replace(
        new,
        partition_count=instance.int("num.partitions"),
        replication_factor=instance.int("default.replication.factor"),
        configs={} if name is None else {LONG_NAME_CONFIG: name},
    )


def refuse_long_whitelists(
    request: Any, context: RequestContext, services: Services
) -> Generator[None, None, Response | None]:
    """Refuse topics whose whitelists together take long to read."""
    room = WhitelistRoom()
    for count, topic in enumerate(request.topics, 1):
        if not all(room.takes(config.name, len(config.value or "")) for config in topic.configs):
            refusal: Response = build_refusal(request, KafkaError(ErrorCode.POLICY_VIOLATION, TOO_LONG_WHITELISTS))
            return refusal
        if count % STEP_TOPICS == 0:
            yield
    return None


def narrow_created_topics(request: Any, context: RequestContext, services: Services) -> Iterator[None]:
    """Give the topics of CreateTopics the counts of the instance and the names that clients know.

    To clients there is no config that keeps long names, and none that makes segments tiny.
    """
    assert context.tenant is not None
    instance, names = context.tenant.instance, context.tenant.names
    partitions, replicas = instance.int("num.partitions"), instance.int("default.replication.factor")
    for count, topic in enumerate(request.topics, 1):
        if topic.num_partitions == BROKER_DEFAULT and not topic.assignments:
            topic.num_partitions = partitions
        if topic.replication_factor == BROKER_DEFAULT and not topic.assignments:
            topic.replication_factor = replicas
        for config in topic.configs:
            if config.name in HIDDEN_CONFIGS:
                config.name = NO_CONFIG
        name = names.find_long_name(topic.name)
        if name is not None:
            topic.configs = [*topic.configs, CreatableTopicConfig(name=LONG_NAME_CONFIG, value=name)]
        if count % STEP_TOPICS == 0:
            yield


def hide_long_names(request: Any, response: Any, context: RequestContext, services: Services) -> Iterator[None]:
    """Leave the config that keeps long names out of the configs of created topics."""
    for topic in response.topics:
        if topic.configs and any(config.name == LONG_NAME_CONFIG for config in topic.configs):
            topic.configs = [config for config in topic.configs if config.name != LONG_NAME_CONFIG]
        yield
