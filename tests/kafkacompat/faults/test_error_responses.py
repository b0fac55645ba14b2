"""Errors in responses: every API in every version has a place for one, and clients read it there."""

from __future__ import annotations

from typing import Any

import pytest

from kafkacompat.faults.error_responses import must_be_patched, patch_response, reject_request
from kafkacompat.faults.parsing import list_apis
from kafkacompat.faults.targets import list_topics, merge, select
from kafkacompat.wire.apis import find_api
from kafkacompat.wire.apis.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from kafkacompat.wire.apis.metadata import MetadataResponse, MetadataResponsePartition, MetadataResponseTopic
from kafkacompat.wire.apis.produce import PartitionProduceResponse
from kafkacompat.wire.errors import ErrorCode
from kafkacompat.wire.schema import Struct
from tests.kafkacompat.faults.samples import encode_response, list_error_codes, make_request

CODE = ErrorCode.REQUEST_TIMED_OUT
EVERY_VERSION = [
    pytest.param(key, version, id=f"{name} v{version}")
    for name, (key, versions) in list_apis().items()
    for version in versions
    if not must_be_patched(key, version)
]


@pytest.mark.parametrize(("key", "version"), EVERY_VERSION)
def test_a_rejected_request_has_the_error_and_no_success(key: int, version: int) -> None:
    request = make_request(key, version)
    response = encode_response(reject_request(request, version, CODE, by_topic=False), version)
    codes = list_error_codes(response, version)
    assert set(codes) == {CODE}, response


@pytest.mark.parametrize(("key", "version"), EVERY_VERSION)
def test_the_error_is_written_into_every_response_that_has_succeeded(key: int, version: int) -> None:
    response = reject_request(make_request(key, version), version, ErrorCode.NONE, by_topic=False)
    patch_response(response, version, CODE, None)
    assert CODE in list_error_codes(encode_response(response, version), version), response


TOPIC_VERSIONS = [
    pytest.param(key, version, id=f"{name} v{version}")
    for name, (key, versions) in list_apis().items()
    for version in versions
    if not must_be_patched(key, version)
    and any(topic.partitions for topic in list_topics(make_request(key, version), version))
]


@pytest.mark.parametrize(("key", "version"), TOPIC_VERSIONS)
def test_requests_are_divided_by_partition(key: int, version: int) -> None:
    """One partition of a request goes one way, and the rest goes the other way: nothing is lost."""
    request = make_request(key, version)
    chosen = select(request, version, lambda topic, index: topic[:1] in ("t", b"t") and index == 1)
    rest = select(request, version, lambda topic, index: not (topic[:1] in ("t", b"t") and index == 1))
    assert _list_partitions(chosen, version) == {("t", 1)}
    assert _list_partitions(rest, version) == {("t", 0), ("u", 0), ("u", 1)}
    assert _list_partitions(request, version) == {("t", 0), ("t", 1), ("u", 0), ("u", 1)}


def _list_partitions(message: Struct, version: int) -> set[tuple[str, int]]:
    return {
        (topic.key[:1] if isinstance(topic.key, str) else topic.key[:1].decode(), index)
        for topic in list_topics(message, version)
        for index, _ in topic.partitions
    }


# APIs whose response names the partitions of the request, so that one of them can fail.
BY_PARTITION = [0, 2, 8, 9, 21, 23, 24, 27, 28, 47, 61]


@pytest.mark.parametrize("key", BY_PARTITION)
def test_one_partition_of_a_response_fails_and_the_others_do_not(key: int) -> None:
    versions = next(versions for other, versions in list_apis().values() if other == key)
    for version in versions:
        request = make_request(key, version)
        chosen = select(request, version, lambda topic, index: topic[:1] in ("t", b"t") and index == 1)
        rest = select(request, version, lambda topic, index: not (topic[:1] in ("t", b"t") and index == 1))
        response = reject_request(rest, version, ErrorCode.NONE, by_topic=True)
        merge(response, reject_request(chosen, version, CODE, by_topic=True))
        answered = encode_response(response, version)
        failed = _list_failed(answered, version)
        assert failed == {("t", 0): 0, ("t", 1): CODE, ("u", 0): 0, ("u", 1): 0}, version
        topics = [topic.key for topic in list_topics(answered, version)]
        assert len(topics) == len(set(topics)) * (2 if key in (9, 24, 27) and _has_owners(request, version) else 1)
        # The same error is written into a response that has succeeded.
        whole = reject_request(request, version, ErrorCode.NONE, by_topic=True)
        patch_response(whole, version, CODE, lambda topic, index: topic[:1] in ("t", b"t") and index in (1, None))
        assert _list_failed(encode_response(whole, version), version) == failed


def _has_owners(request: Any, version: int) -> bool:
    """Return whether the topics are below two groups, transactions or markers."""
    return sum(topic.key[:1] in ("t", b"t") for topic in list_topics(request, version)) == 2


def _list_failed(response: Struct, version: int) -> dict[tuple[str, int], int]:
    return {
        (topic.key[:1] if isinstance(topic.key, str) else topic.key[:1].decode(), index): next(
            int(getattr(item, name)) for name in ("error_code", "partition_error_code") if name in item.FIELDS
        )
        for topic in list_topics(response, version)
        for index, item in topic.partitions
    }


def test_a_rejected_produce_says_that_nothing_was_appended() -> None:
    response = reject_request(make_request(0, 9), 9, CODE, by_topic=False)
    partition: PartitionProduceResponse = response.responses[0].partition_responses[0]
    assert (partition.base_offset, partition.log_append_time_ms) == (-1, -1)


def make_fetch_response() -> FetchResponse:
    partitions = [PartitionData(partition_index=index, high_watermark=5, records=b"records") for index in (0, 1)]
    return FetchResponse(session_id=7, responses=[FetchableTopicResponse(topic="t", partitions=partitions)])


def test_a_fetch_fails_by_partition_and_without_records() -> None:
    response = make_fetch_response()
    patch_response(response, 12, CODE, lambda topic, index: index == 1)
    good, bad = response.responses[0].partitions
    assert (good.error_code, good.records) == (0, b"records")
    assert (bad.error_code, bad.records, bad.high_watermark) == (CODE, b"", -1)
    assert response.error_code == 0
    patch_response(response, 12, CODE, None)
    assert [data.error_code for data in response.responses[0].partitions] == [CODE, CODE]


def test_errors_of_a_fetch_session_fail_the_fetch_as_a_whole() -> None:
    response = make_fetch_response()
    patch_response(response, 12, ErrorCode.FETCH_SESSION_ID_NOT_FOUND, None)
    assert (response.error_code, response.responses) == (ErrorCode.FETCH_SESSION_ID_NOT_FOUND, [])


@pytest.mark.parametrize("by_partition", [False, True])
def test_metadata_fails_by_topic_or_by_partition(by_partition: bool) -> None:
    partitions = [MetadataResponsePartition(partition_index=index, leader_id=1) for index in (0, 1)]
    response = MetadataResponse(topics=[MetadataResponseTopic(name="t", partitions=partitions)])
    patch_response(response, 9, CODE, lambda topic, index: index in (1, None), by_partition=by_partition)
    (topic,) = response.topics
    if by_partition:
        assert topic.error_code == 0
        assert [(data.error_code, data.leader_id) for data in topic.partitions] == [(0, 1), (CODE, -1)]
    else:
        assert (topic.error_code, topic.partitions) == (CODE, [])


def test_every_api_of_the_protocol_that_a_broker_serves_is_known() -> None:
    assert all(find_api(key).request.__name__ == f"{name}Request" for name, (key, _) in list_apis().items())
