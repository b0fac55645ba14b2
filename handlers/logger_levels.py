"""The levels of this broker's loggers, as a resource of DescribeConfigs and IncrementalAlterConfigs."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence

from kafkacompat.config import ConfigError
from kafkacompat.config.loggers import ROOT, check_logger, list_logger_levels, set_logger_level
from kafkacompat.config.resources import is_node_id
from kafkacompat.config.sources import ConfigSource
from kafkacompat.metadata.config_changes import ConfigOperation, ConfigOperationType
from kafkacompat.wire.apis.describe_configs import DescribeConfigsResourceResult
from kafkacompat.wire.errors import ErrorCode, KafkaError

log = logging.getLogger(__name__)


def describe_levels(name: str, node_id: int) -> list[DescribeConfigsResourceResult]:
    """Describe every logger of this broker; raises KafkaError INVALID_REQUEST if *name* is not the broker's id."""
    _check_node(name, node_id)
    return [
        DescribeConfigsResourceResult(name=logger, value=level, config_source=ConfigSource.DYNAMIC_BROKER_LOGGER_CONFIG)
        for logger, level in sorted(list_logger_levels().items())
    ]


def change_levels(name: str, operations: Sequence[ConfigOperation], node_id: int, *, validate_only: bool) -> None:
    """Set and delete levels, all or none of them; raises KafkaError INVALID_REQUEST or INVALID_CONFIG."""
    _check_node(name, node_id)
    _check_operations(operations)
    for operation in () if validate_only else operations:
        level = operation.value if operation.operation == ConfigOperationType.SET else None
        set_logger_level(operation.name, level)
        log.warning("the log level of %s is now %s", operation.name, level or "that of its parent")


def _check_operations(operations: Iterable[ConfigOperation]) -> None:
    for name, operation, value in operations:
        if operation not in (ConfigOperationType.SET, ConfigOperationType.DELETE):
            raise KafkaError(
                ErrorCode.INVALID_REQUEST, f"{operation.name} of {name}: a level can only be set or deleted"
            )
        try:
            check_logger(name, value if operation == ConfigOperationType.SET else None)
        except ConfigError as problem:
            raise KafkaError(ErrorCode.INVALID_CONFIG, str(problem)) from problem
        if operation == ConfigOperationType.DELETE and name == ROOT:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST, f"the level of {ROOT} cannot be deleted; set another level instead"
            )


def _check_node(name: str, node_id: int) -> None:
    if not is_node_id(name, node_id):
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"'{name}' is not the id of this broker, {node_id}")
