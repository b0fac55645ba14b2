"""Comparing the leader epochs of batches with the leader epoch checkpoint, and deciding which of both is wrong.

No checksum covers the epoch in a batch's header. Therefore a single batch that contradicts its neighbours is the wrong
one.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import pairwise

from kafkacompat.storage.files.checkpoints import CorruptCheckpointError, read_checkpoint
from kafkacompat.storage.files.filesystem import Files
from kafkacompat.storage.inspection.findings import Finding, ReportFinding
from kafkacompat.storage.inspection.segment_check import CheckedSegment, EpochRun
from kafkacompat.storage.log.leader_epochs import FILE_NAME, EpochEntry, LeaderEpochs

_LARGEST_EPOCH = 2**31 - 1


def check_epochs(
    files: Files,
    folder: str,
    segments: Sequence[CheckedSegment],
    start_offset: int,
    written_to: int,
    report: ReportFinding,
) -> bool:
    """Report differences; return whether the checkpoint is wrong.

    It may lack epochs from offset `written_to` on, and those before `start_offset`.
    """
    path = os.path.join(folder, FILE_NAME)
    try:
        entries = [EpochEntry(int(epoch), int(offset)) for epoch, offset in read_checkpoint(files, path, 2)]
        problem = _describe_disorder(entries)
    except (CorruptCheckpointError, ValueError) as error:
        entries, problem = [], f"it cannot be read: {error}"
    known = LeaderEpochs(files, folder, [] if problem else entries)
    runs = [(segment, run) for segment in segments for run in segment.epochs if run.last_offset >= start_offset]
    agreeing = [_agrees_with(run, known, start_offset) for _, run in runs]
    unwritten = [run.last_offset >= written_to for _, run in runs]
    _mark_doubtful([run for _, run in runs], agreeing, unwritten)
    for segment, run in runs:
        if run.doubtful:
            fault = f"the batch has leader epoch {run.epoch}, unlike its neighbours"
            report(Finding(segment.path, fault, False, run.position, run.first_offset, run.last_offset))
    if problem:
        report(Finding(path, problem))
        return True
    for agrees, unknown, (_, run) in zip(agreeing, unwritten, runs, strict=True):
        if not (run.doubtful or agrees or unknown):
            fault = f"the batches have epoch {run.epoch}, the file says {known.epoch_for_offset(run.last_offset)}"
            report(Finding(path, fault, first_offset=run.first_offset, last_offset=run.last_offset))
            return True
    return False


def _describe_disorder(entries: Sequence[EpochEntry]) -> str:
    for before, after in pairwise(entries):
        if after.epoch <= before.epoch or after.start_offset < before.start_offset:
            return (
                f"{after.epoch} from {after.start_offset} on cannot follow {before.epoch} from {before.start_offset} on"
            )
    return ""


def _agrees_with(run: EpochRun, known: LeaderEpochs, start_offset: int) -> bool:
    ends = max(run.first_offset, start_offset), run.last_offset
    return all(known.epoch_for_offset(offset) == run.epoch for offset in ends)


def _mark_doubtful(runs: Sequence[EpochRun], agreeing: Sequence[bool], unwritten: Sequence[bool]) -> None:
    """Mark single batches that do not fit between their neighbours, or contradict a checkpoint that is right otherwise."""
    for slot, run in enumerate(runs):
        lowest = runs[slot - 1].epoch if slot else -1
        highest = runs[slot + 1].epoch if slot + 1 < len(runs) else _LARGEST_EPOCH
        fits = lowest <= run.epoch <= highest or lowest > highest
        contradicted = any(agreeing) and not unwritten[slot]
        run.doubtful = run.batches == 1 and len(runs) > 1 and not agreeing[slot] and (contradicted or not fits)
