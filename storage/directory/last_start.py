"""What the start of a cluster's broker knows of a log directory, in `kafkacompat-start.json`. Format: docs/format/checkpoints.md.

Everything here is a disk operation.
"""

from __future__ import annotations

import json
import os
from typing import NamedTuple

from kafkacompat.storage.files.checkpoints import replace_file
from kafkacompat.storage.files.filesystem import Files

FILE_NAME = "kafkacompat-start.json"


class LastStart(NamedTuple):
    """The boot of the machine in which a broker has used the directory last, and what the directory may have lost.

    ``began_empty`` is set for a directory that was new, ``lost_page_cache`` if the machine has restarted after a broker that did
    not stop in order. Both last until the cluster's controller has given every partition of the broker a role.
    """

    boot_id: str
    began_empty: bool = False
    lost_page_cache: bool = False


def read_last_start(files: Files, directory: str) -> LastStart | None:
    """Return the notes of the last start; None without readable ones."""
    path = os.path.join(directory, FILE_NAME)
    if not files.exists(path):
        return None
    try:
        fields = json.loads(files.read(path))
        return LastStart(str(fields["boot_id"]), bool(fields["began_empty"]), bool(fields["lost_page_cache"]))
    except (ValueError, KeyError, TypeError):
        return None


def write_last_start(files: Files, directory: str, start: LastStart) -> None:
    """Write the notes, unless the file has the same."""
    if start != read_last_start(files, directory):
        contents = json.dumps({"version": 1, **start._asdict()}) + "\n"
        replace_file(files, os.path.join(directory, FILE_NAME), contents.encode())


def judge_start(last: LastStart | None, boot_id: str, *, is_new: bool, is_clean: bool) -> LastStart:
    """Return the notes of a start in this boot, where *last* is what the one before has left."""
    if is_new:
        return LastStart(boot_id, began_empty=True)
    is_other_boot = last is None or not boot_id or last.boot_id != boot_id
    return LastStart(
        boot_id,
        last is not None and last.began_empty,
        (last is not None and last.lost_page_cache) or (is_other_boot and not is_clean),
    )
