"""One resource of the configuration APIs: asked for and changed, every answer noted."""

from __future__ import annotations

from collections.abc import Sequence

from compat_tests.same_answers.transcript import Transcript
from kafkacompat.wire.apis import alter_configs as legacy
from kafkacompat.wire.apis import incremental_alter_configs as incremental
from kafkacompat.wire.apis.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)

TOPIC, BROKER, LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = range(4)
Change = tuple[str, int, "str | None"]

# Properties that the two brokers start with, and so describe differently.
GIVEN_AT_START = {
    "advertised.listeners",
    "auto.create.topics.enable",
    "broker.id",
    "controller.listener.names",
    "controller.quorum.voters",
    "group.initial.rebalance.delay.ms",
    "listeners",
    "log.dir",
    "log.dirs",
    "node.id",
    "offsets.topic.replication.factor",
    "process.roles",
    "share.coordinator.state.topic.min.isr",
    "share.coordinator.state.topic.replication.factor",
    "transaction.state.log.min.isr",
    "transaction.state.log.replication.factor",
}


class Configs:
    """Describes and changes one resource, noting every answer."""

    def __init__(self, script: Transcript, kind: int, name: str) -> None:
        self._script = script
        self._kind = kind
        self._name = name

    def describe(self, label: str, *keys: str, version: int = 4) -> None:
        asked = DescribeConfigsResource(
            resource_type=self._kind, resource_name=self._name, configuration_keys=list(keys) or None
        )
        request = DescribeConfigsRequest(resources=[asked], include_synonyms=True, include_documentation=True)
        self._script.ask(label, request, DescribeConfigsResponse, version)

    def change(self, label: str, *changes: Change, version: int = 1, check: bool = False) -> None:
        request = self._incremental(changes, check)
        answer = self._script.ask(label, request, incremental.IncrementalAlterConfigsResponse, version)
        if answer is not None and not answer.responses[0].error_code:
            self._settle()

    def change_in_every_version(self, label: str, *changes: Change) -> None:
        request = self._incremental(changes, False)
        self._script.ask_every_version(label, request, incremental.IncrementalAlterConfigsResponse)
        self._settle()

    def _settle(self) -> None:
        """Wait until a broker that answers before its changes take effect has caught up."""
        if self._kind != LOGGER:
            self._script.settle()

    def _incremental(self, changes: Sequence[Change], check: bool) -> incremental.IncrementalAlterConfigsRequest:
        configs = [
            incremental.AlterableConfig(name=key, config_operation=how, value=value) for key, how, value in changes
        ]
        resource = incremental.AlterConfigsResource(resource_type=self._kind, resource_name=self._name, configs=configs)
        return incremental.IncrementalAlterConfigsRequest(resources=[resource], validate_only=check)

    def replace(self, label: str, *configs: tuple[str, str | None], check: bool = False) -> None:
        given = [legacy.AlterableConfig(name=key, value=value) for key, value in configs]
        resource = legacy.AlterConfigsResource(resource_type=self._kind, resource_name=self._name, configs=given)
        request = legacy.AlterConfigsRequest(resources=[resource], validate_only=check)
        self._script.ask_every_version(label, request, legacy.AlterConfigsResponse)
        self._settle()
