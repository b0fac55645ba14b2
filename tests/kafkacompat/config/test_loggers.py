"""Python's loggers under Kafka's names of levels."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from kafkacompat.config import ConfigError
from kafkacompat.config.loggers import LEVELS, check_logger, list_logger_levels, set_logger_level

PARENT, CHILD = "kafkacompat_test", "kafkacompat_test.child"


@pytest.fixture(autouse=True)
def levels() -> Iterator[None]:
    root = logging.root.level
    for name in (PARENT, CHILD):
        logging.getLogger(name).setLevel(logging.NOTSET)
    yield
    logging.root.setLevel(root)


@pytest.mark.parametrize("level", LEVELS)
def test_a_level_is_shown_as_it_was_set_and_inherited(level: str) -> None:
    set_logger_level(PARENT, level)
    assert list_logger_levels()[PARENT] == list_logger_levels()[CHILD] == level
    assert logging.getLogger(CHILD).isEnabledFor(LEVELS[level])
    assert not logging.getLogger(CHILD).isEnabledFor(LEVELS[level] - 1)


def test_a_level_that_is_deleted_is_the_parents() -> None:
    set_logger_level("root", "ERROR")
    set_logger_level(PARENT, "DEBUG")
    set_logger_level(PARENT, None)
    assert list_logger_levels()["root"] == list_logger_levels()[PARENT] == "ERROR"


def test_levels_between_and_beyond_kafkas() -> None:
    logger = logging.getLogger(PARENT)
    logger.setLevel(25)
    assert list_logger_levels()[PARENT] == "WARN"
    logger.setLevel(99)
    assert list_logger_levels()[PARENT] == "OFF"


def test_the_parent_of_the_brokers_loggers_is_there() -> None:
    assert {"root", "kafkacompat"} <= list_logger_levels().keys()


@pytest.mark.parametrize(
    ("name", "level", "sentence"),
    [
        ("no.such", "INFO", "there is no logger 'no.such'"),
        ("no.such", None, "there is no logger 'no.such'"),
        (PARENT, "OFF", "it takes one of TRACE, DEBUG, INFO, WARN, ERROR, FATAL"),
        (PARENT, "info", "it takes one of"),
    ],
)
def test_bad_loggers_and_levels_are_refused(name: str, level: str | None, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        check_logger(name, level)
