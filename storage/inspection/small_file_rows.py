"""The rows of snapshots, checkpoints and the other small files."""

from __future__ import annotations

from collections.abc import Iterator

from kafkacompat.storage.inspection.rows import DumpRow, decode_text, make_problem_row
from kafkacompat.storage.producers.snapshots import CorruptSnapshotError, decode_snapshot


def snapshot_rows(data: bytes) -> Iterator[DumpRow]:
    """Yield the producers of a snapshot."""
    try:
        producers = decode_snapshot(data)
    except CorruptSnapshotError as error:
        yield make_problem_row(str(error))
        return
    for producer in producers:
        last = producer.batches[-1] if producer.batches else None
        fields = {
            "producerId": producer.producer_id,
            "producerEpoch": producer.producer_epoch,
            "coordinatorEpoch": producer.coordinator_epoch,
            "currentTxnFirstOffset": None
            if producer.current_txn_first_offset < 0
            else producer.current_txn_first_offset,
            "lastTimestamp": producer.last_timestamp,
            "firstSequence": None if last is None else last.first_sequence,
            "lastSequence": None if last is None else last.last_sequence,
            "lastOffset": None if last is None else last.last_offset,
            "offsetDelta": None if last is None else last.offset_delta,
            "timestamp": None if last is None else last.timestamp,
        }
        yield DumpRow("producer", fields)


_CHECKPOINT_FIELDS = {2: ("epoch", "startOffset"), 3: ("topic", "partition", "offset")}


def checkpoint_rows(data: bytes) -> Iterator[DumpRow]:
    """Yield the entries of a checkpoint: two numbers (leader epochs), or a topic, a partition and an offset."""
    lines = decode_text(data).splitlines()
    if len(lines) < 2 or lines[0] != "0":
        yield make_problem_row(f"it begins with {lines[:1]}, not with the version 0 and the number of its entries")
        return
    for line in lines[2:]:
        words = line.split()
        if len(words) not in _CHECKPOINT_FIELDS:
            yield make_problem_row(f"the line {line!r} has {len(words)} words")
            continue
        values = [
            word if name == "topic" or not word.lstrip("-").isdigit() else int(word)
            for name, word in zip(_CHECKPOINT_FIELDS[len(words)], words, strict=True)
        ]
        yield DumpRow("checkpoint entry", dict(zip(_CHECKPOINT_FIELDS[len(words)], values, strict=True)))
    if lines[1] != str(len(lines) - 2):
        yield make_problem_row(f"it names {lines[1]} entries, but has {len(lines) - 2}")


def property_rows(data: bytes, separator: str) -> Iterator[DumpRow]:
    """Yield the names and values of meta.properties or partition.metadata."""
    for line in decode_text(data).splitlines():
        name, has_separator, value = line.partition(separator)
        if has_separator and not name.startswith(("#", "!")):
            yield DumpRow("property", {"name": name.strip(), "value": value.strip()})
