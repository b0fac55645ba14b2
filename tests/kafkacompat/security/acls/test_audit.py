"""The audit log: its lines, its files, and that neither a full disk nor a flood of refusals harms the broker."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest
from twisted.internet.task import Clock

from kafkacompat.security.acls.audit import FLUSH_S, LINES_A_SECOND, MOST_WAITING, AttemptLog, AuditFile, AuditLog
from kafkacompat.security.acls.authorizer import Attempt
from kafkacompat.security.acls.decisions import DENIED_BY_DEFAULT, SUPER_USER
from kafkacompat.security.acls.model import AclOperation, AclResourceType
from kafkacompat.security.principals import Principal
from tests.fakes.disk import ImmediateDisk

ALICE = Principal("User", "alice")


def make_attempt(resource: str = "orders", *, allowed: bool = False) -> Attempt:
    decision = SUPER_USER if allowed else DENIED_BY_DEFAULT
    kind = AclResourceType.TOPIC
    return Attempt(ALICE, "10.0.0.1", "SSL", "Produce", AclOperation.WRITE, kind, resource, 1, decision)


def make_log(path: Path, max_bytes: int = 1 << 20, files: int = 3) -> tuple[AuditLog, Clock]:
    clock = Clock()
    clock.advance(1_700_000_000.25)
    return AuditLog(AuditFile(str(path), max_bytes, files), ImmediateDisk(), clock), clock


def read_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_line(tmp_path: Path) -> None:
    log, clock = make_log(tmp_path / "audit.log")
    log.add(make_attempt("line\nbreak"))
    assert not (tmp_path / "audit.log").exists()
    clock.advance(FLUSH_S)
    assert read_lines(tmp_path / "audit.log") == [
        {
            "time": "2023-11-14T22:13:20.250Z",
            "principal": "User:alice",
            "host": "10.0.0.1",
            "listener": "SSL",
            "api": "Produce",
            "operation": "WRITE",
            "resource_type": "TOPIC",
            "resource": "line\nbreak",
            "allowed": False,
        }
    ]
    assert (tmp_path / "audit.log").stat().st_mode & 0o777 == 0o600
    assert clock.getDelayedCalls() == []


def test_lines_are_appended_to_what_is_there(tmp_path: Path) -> None:
    for _ in range(2):
        log, clock = make_log(tmp_path / "audit.log")
        log.add(make_attempt())
        clock.advance(FLUSH_S)
    assert len(read_lines(tmp_path / "audit.log")) == 2


def test_a_full_file_is_renamed_and_the_oldest_goes(tmp_path: Path) -> None:
    log, clock = make_log(tmp_path / "audit.log", max_bytes=1024, files=3)
    for number in range(40):
        log.add(make_attempt(f"topic-{number}"))
        clock.advance(FLUSH_S)
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["audit.log", "audit.log.1", "audit.log.2"]
    lines = [line for name in reversed(names) for line in read_lines(tmp_path / name)]
    numbers = [int(line["resource"].removeprefix("topic-")) for line in lines]
    assert numbers == list(range(numbers[0], 40))
    assert all((tmp_path / name).stat().st_size <= 1024 for name in names)


def test_a_long_name_is_cut(tmp_path: Path) -> None:
    log, clock = make_log(tmp_path / "audit.log")
    log.add(make_attempt("x" * 30_000))
    clock.advance(FLUSH_S)
    assert (tmp_path / "audit.log").stat().st_size < 1000


def test_a_disk_that_fails_costs_one_line(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    log, clock = make_log(tmp_path / "missing" / "audit.log")
    for _ in range(5):
        log.add(make_attempt())
        clock.advance(FLUSH_S)
    assert len(caplog.records) == 1 and "cannot be written" in caplog.text
    (tmp_path / "missing").mkdir()
    log.add(make_attempt())
    clock.advance(FLUSH_S)
    assert "is written again" in caplog.text and len(read_lines(tmp_path / "missing" / "audit.log")) == 1


def test_a_flood_is_bounded_in_memory(tmp_path: Path) -> None:
    log, clock = make_log(tmp_path / "audit.log")
    for _ in range(MOST_WAITING + 7):
        log.add(make_attempt())
    clock.advance(FLUSH_S)
    lines = read_lines(tmp_path / "audit.log")
    assert len(lines) == MOST_WAITING + 1 and lines[-1]["left_out"] == 7


def test_refusals_are_logged_up_to_a_bound(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    clock = Clock()
    observer = AttemptLog(clock, None)
    for _ in range(LINES_A_SECOND + 30):
        observer.note_denied(make_attempt("a\nb\x1b[31m"))
    clock.advance(1)
    observer.note_allowed(make_attempt(allowed=True))
    assert len(caplog.records) == LINES_A_SECOND + 1
    assert caplog.records[-1].getMessage() == "Left out 30 more refusals in a second"
    assert all("\n" not in record.getMessage() and "\x1b" not in record.getMessage() for record in caplog.records)
    observer.note_denied(make_attempt())
    assert "is Denied operation = WRITE" in caplog.records[-1].getMessage()
