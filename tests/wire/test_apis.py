"""All messages of all APIs: written bytes are read again, and other bytes are rejected."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module

import pytest

from kafkacompat.wire.apis import API_NAMES, find_api
from kafkacompat.wire.apis.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from kafkacompat.wire.apis.fetch import FetchRequest, FetchTopic
from kafkacompat.wire.compiler import (
    decode_message,
    encode_message,
    find_reader,
    find_stepwise_reader,
    find_stepwise_writer,
)
from kafkacompat.wire.errors import ErrorCode
from kafkacompat.wire.primitives import MalformedError
from kafkacompat.wire.schema import Message, Struct
from tests.wire.random_messages import Mode, make_message, seeded_random, versions_of

MESSAGES = [message for key in API_NAMES for message in find_api(key)]
# One test for all versions of a message: thousands of tests take longer than their work.
each_message = pytest.mark.parametrize("cls", MESSAGES, ids=lambda cls: cls.__name__)


def list_versions(cls: type[Message]) -> Iterator[int]:
    """Yield each version, which pytest shows when a test fails."""
    for _, version in versions_of(cls):
        print(f"version={version}")
        yield version


def test_every_api_and_version_ever_released_is_declared() -> None:
    assert list(API_NAMES) == list(range(93))
    # 360 were released; the last of InitProducerId is not stable yet.
    assert sum(len(list(find_api(key).request.VERSIONS)) for key in API_NAMES) == 361


@pytest.mark.parametrize("key", API_NAMES)
def test_request_and_response_belong_together(key: int) -> None:
    request, response = find_api(key)
    assert request.API_KEY == response.API_KEY == key
    assert request.VERSIONS == response.VERSIONS
    assert request.FLEXIBLE == response.FLEXIBLE
    assert request.__name__.removesuffix("Request") == response.__name__.removesuffix("Response")


@pytest.mark.parametrize("key", API_NAMES)
def test_every_declaration_has_a_docstring(key: int) -> None:
    module = import_module(find_api(key).request.__module__)
    declared = [value for value in vars(module).values() if isinstance(value, type) and issubclass(value, Struct)]
    words = [module.__doc__, *(cls.__doc__ for cls in declared if cls.__module__ == module.__name__)]
    assert len(words) >= 3
    assert all(text and text.splitlines()[0].endswith((".", "?")) and "DOC" not in text for text in words)
    assert f"(key {key})" in str(module.__doc__)


@each_message
def test_written_messages_are_read_again(cls: type[Message]) -> None:
    rng = seeded_random()
    for version in list_versions(cls):
        for mode in Mode:
            message = make_message(cls, version, rng, mode)
            data = encode_message(message, version)
            assert find_reader(cls, version)(data, 0) == (message, len(data)), mode


@pytest.mark.parametrize("key", API_NAMES)
def test_in_steps_a_message_is_read_and_written_as_at_once(key: int) -> None:
    for cls in find_api(key):
        version = cls.VERSIONS.last
        message = make_message(cls, version, seeded_random(), Mode.RANDOM)
        data = encode_message(message, version)
        *steps, parts = find_stepwise_writer(cls, version)(message)
        assert b"".join(map(bytes, parts or ())) == data  # type: ignore[arg-type]
        *more_steps, read = find_stepwise_reader(cls, version)(data, 0)
        assert read == (message, len(data))
        assert {*steps, *more_steps} <= {None}


@each_message
def test_a_message_cut_off_anywhere_is_refused(cls: type[Message]) -> None:
    rng = seeded_random()
    for version in list_versions(cls):
        data = encode_message(make_message(cls, version, rng, Mode.SMALL), version)
        for end in range(len(data)):
            with pytest.raises(MalformedError):
                decode_message(cls, memoryview(data)[:end], version)


@each_message
def test_garbage_raises_nothing_but_malformed(cls: type[Message]) -> None:
    rng = seeded_random()
    for version in list_versions(cls):
        valid = encode_message(make_message(cls, version, rng, Mode.SMALL), version)
        for _ in range(40):
            data = bytearray(valid if rng.random() < 0.7 else rng.randbytes(rng.randint(0, 80)))
            for _ in range(rng.randint(1, 4) if data else 0):
                data[rng.randrange(len(data))] = rng.choice((0, 1, 0x7F, 0x80, 0xFE, 0xFF))
            try:
                decode_message(cls, data, version)
            except MalformedError:
                continue


@each_message
def test_an_unknown_tagged_field_is_skipped(cls: type[Message]) -> None:
    for version in list_versions(cls):
        if version not in cls.FLEXIBLE:
            continue
        data = encode_message(cls(), version)
        assert data.endswith(b"\0")
        newer = data[:-1] + b"\x01" + b"\xe7\x07" + b"\x03" + b"new"
        assert find_reader(cls, version)(newer, 0) == (cls(), len(newer))


def test_bytes_after_a_message_are_ignored() -> None:
    assert decode_message(ApiVersionsRequest, b"abc", 0) == ApiVersionsRequest()


def test_the_answer_to_an_unknown_version_has_the_bytes_of_kafka() -> None:
    answer = ApiVersionsResponse(
        error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=[ApiVersion(api_key=18, min_version=0, max_version=4)]
    )
    assert encode_message(answer, 0).hex() == "0023" + "00000001" + "0012" + "0000" + "0004"


def test_a_field_that_a_version_lacks_is_read_as_its_default() -> None:
    request = FetchRequest(session_epoch=5, rack_id="r", topics=[FetchTopic(topic="t", topic_id=b"x" * 16)])
    read = decode_message(FetchRequest, encode_message(request, 4), 4)
    assert (read.session_epoch, read.rack_id) == (-1, "")
    assert read.topics == [FetchTopic(topic="t")]
