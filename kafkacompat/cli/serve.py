"""`kafkacompat serve`: from a properties file, the environment and options to a running process."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from kafkacompat.cli.log_lines import FORMATTERS, ErrorFlood, LineFormatter
from kafkacompat.cli.process import run_broker
from kafkacompat.config import PROPERTIES, BrokerConfig, ConfigError
from kafkacompat.config.environment import property_of_variable, read_environment
from kafkacompat.config.loggers import LEVELS
from kafkacompat.config.suggestions import did_you_mean
from kafkacompat.storage.files.os_errors import describe_error

if TYPE_CHECKING:
    from kafkacompat.cli.for_tests import TestMode

EXIT_BAD_CONFIG = 2

log = logging.getLogger(__name__)


def serve_broker(
    properties: Path | None,
    overrides: Mapping[str, str],
    *,
    host: str | None = None,
    port: int | None = None,
    log_level: str = "INFO",
    strict: bool = False,
    faults: Path | None = None,
    has_test_clock: bool = False,
) -> int:
    """Serve; return the exit code: 2, with nothing created, for a configuration that cannot be used.

    *faults* is a file of rules for tests of clients. With *has_test_clock* tests advance the clock of the broker.
    """
    log_lines = logging.StreamHandler(sys.stderr)
    log_lines.setFormatter(LineFormatter())
    log_lines.addFilter(ErrorFlood())
    logging.basicConfig(level=LEVELS[log_level], handlers=[log_lines])
    try:
        config = BrokerConfig.load(read_properties(properties), read_environment(os.environ), overrides).with_address(
            host, port
        )
        if strict and config.unknown_names:
            raise ConfigError(f"{_describe_unknown(config)}: correct or remove them, or start without --strict")
        test_mode = _prepare_tests(config, faults, has_test_clock) if faults or has_test_clock else None
    except ConfigError as problem:
        print(f"kafkacompat: {problem}", file=sys.stderr)
        return EXIT_BAD_CONFIG
    log_lines.setFormatter(FORMATTERS[config.string("kafkacompat.log.format")]())
    _warn_of_properties(config)
    return run_broker(config, test_mode)


def _prepare_tests(config: BrokerConfig, faults: Path | None, has_clock: bool) -> TestMode:
    # Most brokers are not for tests.
    from kafkacompat.cli.for_tests import prepare_tests

    return prepare_tests(config, faults, has_clock=has_clock)


def read_properties(properties: Path | None) -> str | None:
    """Return the text of the file, as java.util.Properties reads it: in Latin-1, with other characters escaped.

    Without a file, returns None. Raises ConfigError if it cannot be read.
    """
    try:
        return properties.read_text(encoding="latin-1") if properties is not None else None
    except OSError as error:
        error.filename = str(properties)
        raise ConfigError(f"the properties file cannot be read: {describe_error(error)}") from error


def _warn_of_properties(config: BrokerConfig) -> None:
    if config.unknown_names:
        log.warning("%s", _describe_unknown(config))
    if config.names_without_effect:
        log.warning("Properties that are accepted but have no effect here: %s", ", ".join(config.names_without_effect))


def _describe_unknown(config: BrokerConfig) -> str:
    variables = {name: variable for variable in os.environ if (name := property_of_variable(variable))}
    shown = (
        name + (f" from {variables[name]}" if name in variables else "") + did_you_mean(name, PROPERTIES)
        for name in config.unknown_names
    )
    return f"Properties that no broker has and that have no effect: {', '.join(shown)}"
