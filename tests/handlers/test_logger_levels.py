"""The broker's loggers described and changed."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from kafkacompat.wire.errors import ErrorCode
from tests.handlers.admin_node import AdminNode
from tests.handlers.test_configs import (
    APPEND,
    DELETE,
    LOGGER,
    SET,
    SUBTRACT,
    alter,
    describe,
    describe_entry,
    list_synonyms,
)

NAME = "kafkacompat_test.loggers"


@pytest.fixture(autouse=True)
def levels() -> Iterator[None]:
    root = logging.root.level
    logging.getLogger(NAME).setLevel(logging.NOTSET)
    yield
    logging.root.setLevel(root)


def test_every_logger_is_described() -> None:
    result = describe(AdminNode(), LOGGER, "1")
    shown = {config.name: config for config in result.configs}
    assert result.error_code == 0
    assert {"root", "kafkacompat", NAME} <= shown.keys()
    of = shown[NAME]
    assert (of.config_source, of.config_type, of.read_only, of.is_sensitive, list_synonyms(of)) == (
        6,
        0,
        False,
        False,
        [],
    )


def test_a_level_is_set_and_deleted() -> None:
    node = AdminNode()
    assert alter(node, LOGGER, "1", (SET, NAME, "TRACE")) == 0
    assert describe_entry(node, LOGGER, "1", NAME).value == "TRACE"
    assert alter(node, LOGGER, "1", (DELETE, NAME, None)) == 0
    assert alter(node, LOGGER, "1", (SET, "root", "FATAL")) == 0
    assert describe_entry(node, LOGGER, "1", NAME).value == "FATAL"
    assert node.holder.image.configs == {}


def test_a_check_changes_nothing() -> None:
    assert alter(AdminNode(), LOGGER, "1", (SET, NAME, "TRACE"), validate=True) == 0
    assert logging.getLogger(NAME).level == logging.NOTSET


@pytest.mark.parametrize(
    ("name", "change", "code"),
    [
        ("", (SET, NAME, "INFO"), ErrorCode.INVALID_REQUEST),
        ("2", (SET, NAME, "INFO"), ErrorCode.INVALID_REQUEST),
        ("1", (SET, NAME, "LOUD"), ErrorCode.INVALID_CONFIG),
        ("1", (SET, NAME, None), ErrorCode.INVALID_REQUEST),
        ("1", (SET, "no.such.logger", "INFO"), ErrorCode.INVALID_CONFIG),
        ("1", (DELETE, "no.such.logger", None), ErrorCode.INVALID_CONFIG),
        ("1", (DELETE, "root", None), ErrorCode.INVALID_REQUEST),
        ("1", (APPEND, NAME, "INFO"), ErrorCode.INVALID_REQUEST),
        ("1", (SUBTRACT, NAME, "INFO"), ErrorCode.INVALID_REQUEST),
        ("1", (9, NAME, "INFO"), ErrorCode.INVALID_REQUEST),
    ],
)
def test_bad_loggers_and_levels_are_refused(name: str, change: tuple[int, str, str | None], code: ErrorCode) -> None:
    good = (SET, "kafkacompat_test", "TRACE")
    logging.getLogger("kafkacompat_test")
    assert alter(AdminNode(), LOGGER, name, good, change) == code
    assert logging.getLogger("kafkacompat_test").level == logging.NOTSET
