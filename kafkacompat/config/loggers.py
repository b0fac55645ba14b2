"""The broker's loggers as Kafka's tools see them: names and levels, which may change while the broker runs (KIP-412).

The changes end with the process.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from kafkacompat.config.properties import ConfigError

ROOT = "root"
PACKAGE = "kafkacompat"

LEVELS: Mapping[str, int] = {
    "TRACE": 5,
    "DEBUG": logging.DEBUG,
    "INFO": logging.INFO,
    "WARN": logging.WARNING,
    "ERROR": logging.ERROR,
    "FATAL": logging.CRITICAL,
}
"""Kafka's levels; Python has no name for one as low as TRACE."""

logging.addLevelName(LEVELS["TRACE"], "TRACE")


def list_logger_levels() -> dict[str, str]:
    """Return every logger with the level in effect for it."""
    logging.getLogger(
        PACKAGE
    )  # nothing logs to the parent of all loggers of the broker, but users may change its level
    known = {
        name: logger for name, logger in logging.root.manager.loggerDict.items() if isinstance(logger, logging.Logger)
    }
    return {name: _level_name(logger) for name, logger in {**known, ROOT: logging.root}.items()}


def find_level_word(level: int) -> str:
    """Return the word of log4j for the level of a message: the highest one that is not above it."""
    return next((name for name in reversed(list(LEVELS)) if LEVELS[name] <= level), "TRACE")


def _level_name(logger: logging.Logger) -> str:
    """Return the finest of Kafka's levels that the logger writes; OFF when it writes none."""
    level = logger.getEffectiveLevel()
    return next((name for name, number in LEVELS.items() if number >= level), "OFF")


def check_logger(name: str, level: str | None) -> None:
    """Raise ConfigError for an unknown logger or level; the *level* None removes the logger's own level."""
    if name not in list_logger_levels():
        raise ConfigError(f"there is no logger '{name}': name one that DescribeConfigs returns")
    if level is not None and level not in LEVELS:
        raise ConfigError(f"{name}={level} is not valid: it takes one of {', '.join(LEVELS)}")


def set_logger_level(name: str, level: str | None) -> None:
    """Give a logger a level of its own, or its parent's with None; call `check_logger` first."""
    logger = logging.root if name == ROOT else logging.getLogger(name)
    logger.setLevel(logging.NOTSET if level is None else LEVELS[level])
