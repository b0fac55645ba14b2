"""The ids of topics as an instance's clients know them: a secret permutation of all ids.

A client that used a topic before its adoption knows both forms of its id. With an exclusive or it would know the secret of all ids
then, and could name topics of others. From the permutation it learns nothing of other ids.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b

from kafkacompat.wire.primitives import ZERO_UUID

HALF_BYTES = 8
ROUNDS = (b"topic id 0", b"topic id 1", b"topic id 2", b"topic id 3")


class PermutedIds:
    """A permutation of ids of 16 bytes that depends on a *secret*; the empty id stays.

    It is a Feistel network of four rounds with a keyed hash, which nobody without the key tells from a random permutation (Luby and
    Rackoff, 1988).
    """

    def __init__(self, secret: bytes) -> None:
        self._keys = [blake2b(name, key=blake2b(secret).digest()).digest() for name in ROUNDS]

    def hide(self, topic_id: bytes) -> bytes:
        """Return the id that clients know."""
        return self._permute(topic_id, self._hide)

    def reveal(self, topic_id: bytes) -> bytes:
        """Return the brokers' id for an id that clients know."""
        return self._permute(topic_id, self._reveal)

    @staticmethod
    def _permute(topic_id: bytes, step: Callable[[bytes], bytes]) -> bytes:
        if topic_id == ZERO_UUID:
            return topic_id
        permuted = step(topic_id)
        # No other id becomes the empty one, which has a meaning of its own.
        return permuted if permuted != ZERO_UUID else step(permuted)

    def _hide(self, topic_id: bytes) -> bytes:
        left, right = topic_id[:HALF_BYTES], topic_id[HALF_BYTES:]
        for key in self._keys:
            left, right = right, _mix(left, right, key)
        return left + right

    def _reveal(self, topic_id: bytes) -> bytes:
        left, right = topic_id[:HALF_BYTES], topic_id[HALF_BYTES:]
        for key in reversed(self._keys):
            left, right = _mix(right, left, key), left
        return left + right


def _mix(half: bytes, other: bytes, key: bytes) -> bytes:
    digest = blake2b(other, digest_size=HALF_BYTES, key=key).digest()
    return (int.from_bytes(half, "big") ^ int.from_bytes(digest, "big")).to_bytes(HALF_BYTES, "big")
