"""The broker's loggers as Kafka's tools see them: names and levels that change while it runs (KIP-412).

What is changed here is not kept beyond the process.
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
"""Kafka's levels; TRACE lies below what Python has a name for."""

logging.addLevelName(LEVELS["TRACE"], "TRACE")


def logger_levels() -> dict[str, str]:
    """Every logger there is and the level in effect for it."""
    logging.getLogger(PACKAGE)  # the parent of all of ours is there to be changed, though nobody logs to it
    known = {
        name: logger for name, logger in logging.root.manager.loggerDict.items() if isinstance(logger, logging.Logger)
    }
    return {name: _level_name(logger) for name, logger in {**known, ROOT: logging.root}.items()}


def _level_name(logger: logging.Logger) -> str:
    """The finest of Kafka's levels that the logger lets through; OFF when it lets none through."""
    level = logger.getEffectiveLevel()
    return next((name for name, number in LEVELS.items() if number >= level), "OFF")


def check_logger(name: str, level: str | None) -> None:
    """Refuse a logger that there is not, or a *level* that is none (None takes its own level from it).

    Raises ConfigError.
    """
    if name not in logger_levels():
        raise ConfigError(f"there is no logger '{name}': name one that is described")
    if level is not None and level not in LEVELS:
        raise ConfigError(f"{name}={level} is not valid: it takes one of {', '.join(LEVELS)}")


def set_level(name: str, level: str | None) -> None:
    """Give a logger a level of its own, or with None that of its parent; `check_logger` must have allowed it."""
    logger = logging.root if name == ROOT else logging.getLogger(name)
    logger.setLevel(logging.NOTSET if level is None else LEVELS[level])
