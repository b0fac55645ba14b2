"""Helpers of the inspection tests."""

from __future__ import annotations

from kafkacompat.storage.directory.log_directory import LogDirectory
from kafkacompat.storage.inspection.directory_check import check_target, find_check_target
from kafkacompat.storage.inspection.findings import Finding, UnreadablePath
from kafkacompat.storage.log.log import Log
from kafkacompat.storage.log_config import LogConfig
from tests.storage.support import NOW_MS, TOPIC_ID, Store, append_batch, make_batch, take_directory

FOLDER = "data/t-0"


def write_directory(store: Store, *, batches: int = 24, close: bool = True) -> tuple[LogDirectory, Log]:
    """Write a log directory: one partition of several segments, an idempotent producer and two leader epochs."""
    directory = take_directory(store)
    log = directory.open_log("t", 0, TOPIC_ID, LogConfig(segment_bytes=500, index_interval_bytes=100), NOW_MS)
    for index in range(batches):
        records = make_batch(
            2, timestamp=NOW_MS + 10 * index, codec=index % 5, producer_id=5, producer_epoch=0, base_sequence=2 * index
        )
        append_batch(log, records, leader_epoch=index // 10)
    if close:
        directory.close([log])
    return directory, log


def list_findings(store: Store, path: str = "data") -> list[Finding]:
    """Return all findings of a check."""
    findings: list[Finding] = []
    refused: list[UnreadablePath] = []
    check_target(
        store.files, find_check_target(store.files, store.path(path)), findings.append, lambda _: None, refused.append
    )
    assert refused == []
    return findings


def list_problems(store: Store, path: str = "data") -> list[Finding]:
    """Return the findings that are no notes."""
    return [finding for finding in list_findings(store, path) if not finding.note]
