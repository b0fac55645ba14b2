"""Where the keys of an identity provider come from: a file that changes, and a URL that fails and recovers."""

from __future__ import annotations

import json
import os
from pathlib import Path
from random import Random
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec
from jwt.algorithms import ECAlgorithm
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock

from kafkacompat.security.sasl.jwks import (
    MAX_JWKS_BYTES,
    MAX_UNKNOWN_KEYS,
    MIN_EXPEDITED_S,
    SAME_KEY_S,
    FetchedKeys,
    FileKeys,
)
from kafkacompat.security.sasl.settings import JwksSettings

KEY = json.loads(ECAlgorithm.to_jwk(ec.generate_private_key(ec.SECP256R1()).public_key()))


def make_text(*key_ids: str) -> bytes:
    return json.dumps({"keys": [{**KEY, "kid": key_id} for key_id in key_ids]}).encode()


def has_key(keys: Any, key_id: str) -> bool:
    return keys is not None and len(keys.find(key_id, "ES256")) == 1


def test_a_file_is_read_again_when_it_changes(tmp_path: Path) -> None:
    path = tmp_path / "the keys.json"
    source = FileKeys(f"file://{str(path).replace(' ', '%20')}")
    source.start()
    assert source.current() is None
    path.write_bytes(make_text("a"))
    assert has_key(source.current(), "a")
    path.write_bytes(make_text("b"))
    os.utime(path, ns=(1, 1))
    assert has_key(source.current(), "b") and not has_key(source.current(), "a")
    for damage in (b"nonsense", b" " * (MAX_JWKS_BYTES + 1)):
        path.write_bytes(damage)
        assert has_key(source.current(), "b")
    path.unlink()
    assert has_key(source.current(), "b")


class Provider:
    """Fetches as a test says."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.fetches: list[Deferred[bytes]] = []
        settings = JwksSettings("https://issuer/keys", 3600, 0.1, 10)
        self.source = FetchedKeys(settings, self._fetch, self.clock, Random(1))
        self.source.start()

    def _fetch(self, url: str) -> Deferred[bytes]:
        assert url == "https://issuer/keys"
        self.fetches.append(Deferred())
        return self.fetches[-1]

    def find_pause(self) -> float:
        """Return the time until the next fetch."""
        timers: list[Any] = list(self.clock.getDelayedCalls())
        (timer,) = timers
        return float(timer.getTime() - self.clock.seconds())

    def answer(self, *key_ids: str) -> None:
        self.fetches[-1].callback(make_text(*key_ids))


def test_keys_are_fetched_at_the_start_and_refreshed() -> None:
    provider = Provider()
    assert provider.source.current() is None
    provider.answer("a")
    assert has_key(provider.source.current(), "a")
    provider.clock.advance(3599)
    assert len(provider.fetches) == 1
    provider.clock.advance(1)
    provider.answer("b")
    assert has_key(provider.source.current(), "b")


def test_failures_are_repeated_after_a_growing_pause_and_leave_the_keys() -> None:
    provider = Provider()
    provider.answer("a")
    provider.clock.advance(3600)
    pauses = []
    for attempt in range(10):
        if attempt % 2:
            provider.fetches[-1].errback(OSError("refused"))
        else:
            provider.fetches[-1].callback(b"nonsense")
        pauses.append(provider.find_pause())
        provider.clock.advance(pauses[-1])
    assert pauses[0] < 0.13 and 7 < pauses[-1] < 13
    assert len(provider.fetches) == 12 and has_key(provider.source.current(), "a")
    provider.answer("b")
    assert provider.find_pause() == 3600


def test_unknown_keys_expedite_few_fetches() -> None:
    """One in five seconds, and one a minute for the same key."""
    provider = Provider()
    provider.answer("a")
    for number in range(100):
        provider.source.note_unknown(f"b{number}")
    assert len(provider.fetches) == 2
    provider.answer("a")
    provider.source.note_unknown("c")
    assert len(provider.fetches) == 2
    provider.clock.advance(MIN_EXPEDITED_S)
    provider.source.note_unknown("b0")
    assert len(provider.fetches) == 2
    provider.source.note_unknown("c")
    assert len(provider.fetches) == 3
    provider.answer("a", "c")
    provider.clock.advance(SAME_KEY_S)
    provider.source.note_unknown("b0")
    assert len(provider.fetches) == 4


def test_random_keys_take_no_memory() -> None:
    provider = Provider()
    for number in range(3 * MAX_UNKNOWN_KEYS):
        provider.answer("a")
        provider.clock.advance(MIN_EXPEDITED_S)
        provider.source.note_unknown(f"random-{number}")
    assert len(provider.source._unknown) <= MAX_UNKNOWN_KEYS


def test_a_stop_ends_it() -> None:
    provider = Provider()
    provider.source.stop()
    assert provider.clock.getDelayedCalls() == []
    provider = Provider()
    provider.answer("a")
    provider.source.stop()
    provider.source.note_unknown("x")
    assert provider.clock.getDelayedCalls() == [] and len(provider.fetches) == 1
