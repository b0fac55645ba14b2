"""The progress of the scrub, kept across restarts. Format: docs/format/scrub-notes.md."""

from __future__ import annotations

import json
import os
from typing import NamedTuple, TypeAlias

from kafkacompat.storage.files.checkpoints import replace_file
from kafkacompat.storage.files.filesystem import Files

FILE_NAME = "kafkacompat-scrub.json"

ScrubPlace: TypeAlias = "tuple[str, int, int]"
"""(topic, partition, offset)."""

BEFORE_ALL_PLACES: ScrubPlace = ("", 0, 0)
"""Before every partition."""


class ScrubNotes(NamedTuple):
    """The progress of a round, and the damaged segments.

    The round began at `begun_ms` and has come to `reached`, in the order of topics, partitions and offsets. `damaged` has
    the base offsets of segments.
    """

    begun_ms: int
    reached: ScrubPlace
    damaged: tuple[ScrubPlace, ...]


def read_scrub_notes(files: Files, directory: str) -> ScrubNotes | None:
    """Read the notes; None if there are none or they cannot be parsed. Raises OSError. [disk]"""
    path = os.path.join(directory, FILE_NAME)
    if not files.exists(path):
        return None
    try:
        kept = json.loads(files.read(path))
        return ScrubNotes(
            int(kept["begunMs"]), _parse_place(kept["reached"]), tuple(map(_parse_place, kept["damaged"]))
        )
    except (ValueError, KeyError, TypeError, RecursionError):
        return None  # a new round begins


def _parse_place(value: list[object]) -> ScrubPlace:
    topic, partition, offset = value
    return str(topic), int(str(partition)), int(str(offset))


def write_scrub_notes(files: Files, directory: str, notes: ScrubNotes) -> None:
    """Write the notes. Raises OSError. [disk]"""
    kept = {"begunMs": notes.begun_ms, "reached": notes.reached, "damaged": notes.damaged}
    replace_file(files, os.path.join(directory, FILE_NAME), json.dumps(kept).encode())
