"""Keys of metadata files from before the names in keys were encoded as in ZooKeeper; each open of a file renames them.

The names of users, client ids and groups were percent-encoded as in a URL: '~' and the names '.' and '..' stayed as they are, and
a group's name below /consumers was always encoded. Renaming a key that has its new form leaves it as it is.
"""

from __future__ import annotations

import sqlite3
from urllib.parse import unquote

from kafkacompat.metadata.znodes.paths import DEFAULT_NAME, encode_group, encode_name

_GROUP = 2
"""Position of the group between the slashes of /consumers/G/offsets/T/N."""

_ENTITIES = (3, 5)
"""Positions of the names between the slashes of /config/users/U/clients/C."""

_MAYBE_OLD = """SELECT key FROM metadata WHERE
key >= '/config/' AND key < '/config0' AND (instr(key, '~') OR instr(key, '/.')) OR
key >= '/consumers/' AND key < '/consumers0' AND (instr(key, '%') OR key GLOB '/consumers/[./]*')"""


def rename_old_keys(connection: sqlite3.Connection) -> None:
    """Give the keys of a metadata file their new form; the value of a key that has it already wins."""
    renamed = [(renew_key(key), key) for (key,) in connection.execute(_MAYBE_OLD)]
    renamed = [(new, old) for new, old in renamed if new != old]
    if renamed:
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany("UPDATE OR IGNORE metadata SET key = ? WHERE key = ?", renamed)
        connection.executemany("DELETE FROM metadata WHERE key = ?", [(old,) for _, old in renamed])
        connection.execute("COMMIT")


def renew_key(key: str) -> str:
    """Return the new form of a key below /config or /consumers."""
    parts = key.split("/")
    if key.startswith("/consumers/"):
        # The empty group's new name is the only one that is no encoded text.
        if parts[_GROUP] != encode_group(""):
            parts[_GROUP] = encode_group(unquote(parts[_GROUP]))
    else:
        for position in _ENTITIES:
            if len(parts) > position and parts[position] != DEFAULT_NAME:
                parts[position] = encode_name(unquote(parts[position]))
    return "/".join(parts)
