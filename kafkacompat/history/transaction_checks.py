"""The checks of transactions, of the committed offsets of groups, and of copies made in transactions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from kafkacompat.history.events import READ_COMMITTED, READ_UNCOMMITTED, Fetched, HistoryPartition, Isolation
from kafkacompat.history.index import History, PartitionScope, ReaderRun
from kafkacompat.history.lower_bounds import LowerBounds


def find_aborted_reads(history: History) -> Iterator[str]:
    for run in history.runs:
        for offset, text, read_ns in _list_records_with_times(run) if run.isolation == READ_COMMITTED else ():
            value = history.values.get(text)
            if value is None or (transaction := value.transaction) is None:
                continue
            where = f"{run.client} read {text} at offset {offset} of {run.place}"
            if not transaction.may_be_committed:
                yield f"{where}, but {transaction} was not committed"
            elif transaction.asked_ns is not None and read_ns < transaction.asked_ns:
                yield f"{where} before the commit of {transaction} was requested"


def _list_records_with_times(run: ReaderRun) -> Iterator[tuple[int, str, int]]:
    begin = 0
    for end, time_ns in run.times_ns:
        for offset, text in run.records[begin:end]:
            yield offset, text, time_ns
        begin = end


def find_torn(history: History) -> Iterator[str]:
    committed = {of: set(records.values()) for of, records in history.final.items() if of[0] == READ_COMMITTED}
    for transaction in history.transactions.values():
        values = [(text, history.values[text]) for text in transaction.values]
        if not all(history.reaches(READ_COMMITTED, value.place, -1) for _, value in values):
            continue
        present = [text for text, value in values if text in committed[READ_COMMITTED, value.place]]
        if present and len(present) < len(values):
            missing = next(text for text, _ in values if text not in present)
            yield (
                f"{transaction} has {len(present)} of its {len(values)} values in the end: {present[0]}, but not {missing}"
            )


# Offsets of groups


def find_offsets_going_back(history: History) -> Iterator[str]:
    known = {of: LowerBounds(bounds) for of, bounds in _collect_offset_bounds(history).items()}
    for fetched in history.fetched:
        floor = known[fetched.group, fetched.place].at(fetched.asked_ns)
        if fetched.offset < floor:
            yield f"{_describe(fetched)}, after {floor} was committed"


def _collect_offset_bounds(history: History) -> dict[PartitionScope, list[tuple[int, int]]]:
    """Collect (time, committed offset) of each group and partition, from acknowledged commits and from fetched offsets."""
    bounds: dict[PartitionScope, list[tuple[int, int]]] = defaultdict(list)
    for of, commits in history.commits.items():
        bounds[of] += [
            (commit.acknowledged_ns, commit.offset) for commit in commits if commit.acknowledged_ns is not None
        ]
    for fetched in history.fetched:
        bounds[fetched.group, fetched.place].append((fetched.time_ns, fetched.offset))
    return bounds


def _describe(fetched: Fetched) -> str:
    return f"{fetched.client} fetched the committed offset {fetched.offset} of group {fetched.group} in {fetched.place}"


def find_offsets_ahead(history: History) -> Iterator[str]:
    asked: dict[tuple[str, HistoryPartition], dict[int, int]] = {}
    for of, commits in history.commits.items():
        first = asked.setdefault(of, {})
        for commit in commits:
            if commit.asked_ns is not None:
                first[commit.offset] = min(commit.asked_ns, first.get(commit.offset, commit.asked_ns))
    for fetched in history.fetched:
        asked_ns = asked.get((fetched.group, fetched.place), {}).get(fetched.offset)
        if fetched.offset >= 0 and (asked_ns is None or asked_ns > fetched.time_ns):
            yield f"{_describe(fetched)}, which no client had committed"


def find_skipped_by_groups(history: History) -> Iterator[str]:
    read: dict[tuple[str, HistoryPartition], set[int]] = {}
    isolations: dict[str, Isolation] = {}
    for run in history.runs:
        if run.client not in history.last_readers and (group := history.group_of.get(run.client)) is not None:
            read.setdefault((group, run.place), set()).update(offset for offset, _ in run.records)
            isolations[group] = run.isolation or isolations.get(group, READ_UNCOMMITTED)
    for (group, place), offsets in read.items():
        end = history.last_committed_offset(group, place)
        for offset, text in history.final.get((isolations[group], place), {}).items():
            if offset < end and offset not in offsets:
                yield f"group {group} committed offset {end} of {place}, but no member got {text} at offset {offset}"


# Copies


def _collect_copies(history: History) -> dict[HistoryPartition, dict[int, list[str]]]:
    """Collect the committed copies of each source partition, by the offset of the copied record."""
    copies: dict[HistoryPartition, dict[int, list[str]]] = {}
    for (isolation, _), records in history.final.items():
        for text in records.values() if isolation == READ_COMMITTED else ():
            value = history.values.get(text)
            if value is not None and value.source is not None:
                topic, partition, offset = value.source
                copies.setdefault(HistoryPartition(topic, partition), {}).setdefault(offset, []).append(text)
    return copies


def find_copied_again(history: History) -> Iterator[str]:
    for place, by_offset in _collect_copies(history).items():
        for offset, texts in by_offset.items():
            if len(texts) > 1:
                yield f"offset {offset} of {place} was copied {len(texts)} times: {', '.join(texts[:5])}"


def find_miscopied(history: History) -> Iterator[str]:
    copies = _collect_copies(history)
    for (group, place), commits in history.commits.items():
        if all(commit.transaction is None for commit in commits) or not _is_complete(history):
            continue
        end = history.last_committed_offset(group, place)
        copied = copies.get(place, {})
        for offset, text in history.final.get((READ_COMMITTED, place), {}).items():
            if offset < end and offset not in copied:
                yield f"group {group} committed offset {end} of {place}, but {text} at offset {offset} was not copied"
        for offset in copied:
            if offset >= end:
                yield f"group {group} committed offset {end} of {place}, but offset {offset} was copied already"


def _is_complete(history: History) -> bool:
    """Return whether the last readers could read all committed records."""
    return all(finished.offset >= finished.end_offset for finished in history.finished.values())
