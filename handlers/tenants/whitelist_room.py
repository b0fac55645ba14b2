"""How long the whitelists of topics may be that one request of an instance's client sets."""

from __future__ import annotations

from kafkacompat.config.topics import WHITELISTS

MOST_CHARACTERS = 160_000
"""Enough for 10,000 IPv4 networks, which take 20 ms to read."""
TOO_LONG_WHITELISTS = f"the whitelists of one request have more than {MOST_CHARACTERS} characters: use several requests"


class WhitelistRoom:
    """The characters that are left for the whitelists of a request: a broker reads all of them in one turn."""

    def __init__(self) -> None:
        self._left = MOST_CHARACTERS

    def takes(self, option: str, length: int) -> bool:
        """Return whether a value of a config has room, and keep that for it."""
        if option in WHITELISTS:
            self._left -= length
        return self._left >= 0
