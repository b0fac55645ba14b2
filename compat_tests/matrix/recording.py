"""The exchange between a client and a broker: APIs and versions, magic bytes, errors, closed connections.

A Conversation is one connection without a socket; all conversations write into one Recording.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from kafkacompat.wire import compiler
from kafkacompat.wire.apis import API_NAMES, find_api
from kafkacompat.wire.errors import ErrorCode
from kafkacompat.wire.frames import FrameError, FrameReader
from kafkacompat.wire.headers import (
    API_VERSIONS_KEY,
    RequestHeader,
    ResponseHeader,
    request_header_version,
    response_header_version,
)
from kafkacompat.wire.primitives import Buffer, MalformedError
from kafkacompat.wire.schema import Struct

PRODUCE, FETCH = 0, 1
MAX_FRAME_BYTES = 100_000_000
MAGIC_POSITION = 16
"""Where the magic byte lies in a batch and in a message of the older formats alike."""
MOST_NOTES = 20


def newest_magic(version: int) -> int:
    """Return the newest message format that the answer to a Fetch of *version* may carry (KIP-32, KIP-98)."""
    return 0 if version < 2 else 1 if version < 4 else 2


def spoken_name(api_key: int) -> str:
    """Return an API's name as Kafka writes it: ``OffsetCommit``."""
    name = API_NAMES.get(api_key)
    return name.title().replace("_", "") if name else f"API {api_key}"


@dataclass
class Recording:
    """The recorded traffic; several threads may write to it."""

    versions: dict[int, set[int]] = field(default_factory=lambda: defaultdict(set))
    magics: dict[int, set[int]] = field(default_factory=lambda: defaultdict(set))
    notes: list[str] = field(default_factory=list)
    """What went wrong on the wire, each once, in the order it was first seen."""
    formats_too_new: set[str] = field(default_factory=set)
    """Fetch answers in a format that a client of that version cannot read; what it writes is the client's own affair
    (librdkafka 0.9.5 sends magic 1 in Produce v1)."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def request(self, api_key: int, version: int) -> None:
        """Take note of a request."""
        with self._lock:
            self.versions[api_key].add(version)

    def batch(self, api_key: int, version: int, magic: int) -> None:
        """Take note of the first batch of a partition in a Produce request or a Fetch answer."""
        with self._lock:
            self.magics[api_key].add(magic)
            if api_key == FETCH and magic > newest_magic(version):
                self.formats_too_new.add(f"{spoken_name(api_key)} v{version} carried magic {magic}")

    def note(self, words: str) -> None:
        """Take note of something that went wrong, once."""
        with self._lock:
            if words not in self.notes and len(self.notes) < MOST_NOTES:
                self.notes.append(words)

    def add(self, other: Recording) -> None:
        """Take over the versions and magic bytes that another recording saw."""
        for api_key, versions in other.versions.items():
            self.versions[api_key] |= versions
        for api_key, magics in other.magics.items():
            self.magics[api_key] |= magics

    def summary(self) -> str:
        """Return ``Produce v2, Fetch v2, magic 1``."""
        spoken = [
            f"{spoken_name(key)} {_format_versions(self.versions[key])}"
            for key in (PRODUCE, FETCH)
            if self.versions[key]
        ]
        magics = sorted(self.magics[PRODUCE] | self.magics[FETCH])
        if magics:
            spoken.append(f"magic {'/'.join(map(str, magics))}")
        return ", ".join(spoken)


def _format_versions(versions: set[int]) -> str:
    return "/".join(f"v{version}" for version in sorted(versions))


class Conversation:
    """One connection: give it the bytes of each direction as they pass."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._requests = FrameReader(MAX_FRAME_BYTES)
        self._answers = FrameReader(MAX_FRAME_BYTES)
        self._waiting: dict[int, tuple[int, int]] = {}

    def sent(self, data: bytes) -> None:
        """Take bytes that the client sent."""
        for frame in self._frames(self._requests, data):
            self._guarded(self._request, frame)

    def answered(self, data: bytes) -> None:
        """Take bytes that the broker sent."""
        for frame in self._frames(self._answers, data):
            self._guarded(self._answer, frame)

    def hung_up(self) -> None:
        """Take note that the broker closed the connection."""
        for api_key, version in self._waiting.values():
            self._recording.note(f"{spoken_name(api_key)} v{version}: connection closed")

    def _frames(self, reader: FrameReader, data: bytes) -> list[memoryview]:
        try:
            return reader.feed(data)
        except FrameError as problem:
            self._recording.note(str(problem))
            return []

    def _guarded(self, read: Any, frame: memoryview) -> None:
        try:
            read(frame)
        except (MalformedError, ValueError) as problem:
            self._recording.note(f"unreadable: {problem}")

    def _request(self, frame: memoryview) -> None:
        api_key, version = (int.from_bytes(frame[at : at + 2], "big", signed=True) for at in (0, 2))
        self._recording.request(api_key, version)
        self._waiting[int.from_bytes(frame[4:8], "big", signed=True)] = (api_key, version)
        if api_key == PRODUCE:
            request = find_api(PRODUCE).request
            header_version = request_header_version(request, version)
            _, position = compiler.find_reader(RequestHeader, header_version)(frame, 0)
            message, _ = compiler.find_reader(request, version)(frame, position)
            self._batches(message, PRODUCE, version)

    def _answer(self, frame: memoryview) -> None:
        asked = self._waiting.pop(int.from_bytes(frame[:4], "big", signed=True), None)
        if asked is None or asked[0] not in API_NAMES:
            return
        api_key, version = asked
        for code in error_codes(message := _read_answer(frame, api_key, version)):
            self._recording.note(f"{spoken_name(api_key)} v{version}: {_error_name(code)}")
        if api_key == FETCH:
            self._batches(message, FETCH, version)

    def _batches(self, message: Struct, api_key: int, version: int) -> None:
        for records in values_named(message, "records"):
            if records is not None and len(records) > MAGIC_POSITION:
                self._recording.batch(api_key, version, _read_magic(records))


def _read_answer(frame: memoryview, api_key: int, version: int) -> Struct:
    response = find_api(api_key).response
    if api_key == API_VERSIONS_KEY and version not in response.VERSIONS:
        version = 0  # A broker's answer to an unknown version (KIP-511).
    _, position = compiler.find_reader(ResponseHeader, response_header_version(response, version))(frame, 0)
    message: Struct = compiler.find_reader(response, version)(frame, position)[0]
    return message


def _read_magic(records: Buffer) -> int:
    return memoryview(records)[MAGIC_POSITION]


def error_codes(message: Struct) -> list[int]:
    """Return every error code other than 0 in a message, in its order."""
    return [code for code in values_named(message, "error_code") if code]


def values_named(value: Any, name: str) -> Iterator[Any]:
    """Yield the values of every field called *name* in a message and all it contains."""
    if isinstance(value, list):
        for element in value:
            yield from values_named(element, name)
    elif isinstance(value, Struct):
        for field_name in value.FIELDS:
            held = getattr(value, field_name)
            if field_name == name:
                yield held
            else:
                yield from values_named(held, name)


def _error_name(code: int) -> str:
    try:
        return ErrorCode(code).name
    except ValueError:
        return f"error {code}"
