"""One record through the broker: a topic of its own, produce, consume, and what the record's time says about the clock."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from kafkacompat.cli.remote.doctor.stages import DoctorAccess, StageError, open_connection
from kafkacompat.cli.remote.doctor.verdicts import Verdict, accept, fail, skip, warn
from kafkacompat.cli.remote.doctor.wire_connection import ExchangeError, MissingApiError, WireConnection
from kafkacompat.wire.apis.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from kafkacompat.wire.apis.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse, DeleteTopicState
from kafkacompat.wire.apis.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from kafkacompat.wire.apis.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from kafkacompat.wire.apis.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from kafkacompat.wire.errors import ErrorCode, describe_code
from kafkacompat.wire.primitives import MalformedError
from kafkacompat.wire.record_batch import build_batch, read_records, split_batches

TOPIC_PREFIX = "kafkacompat-doctor-"
TOPIC, PRODUCE, CONSUME, DELETE, CLOCK = "topic", "produce", "consume", "delete", "clock"
OLDEST_BATCHES = {ProduceRequest.API_KEY: 3, FetchRequest.API_KEY: 4}
"""The first versions of Produce and Fetch with record batches, by API key."""
LAST_BY_NAME = 12
"""The last version of Produce and Fetch that names topics, not their ids."""
LEADER_ATTEMPTS, LEADER_PAUSE_S = 100, 0.1
FETCH_ATTEMPTS = 10
REQUEST_TIMEOUT_MS = 4000
TOLERATED_S = 1.0
_KEY, _VALUE = b"kafkacompat doctor", b"This record may be deleted."
_ADVISE_RIGHT = f"give the user {{}} on topics that begin with {TOPIC_PREFIX}"
_NO_RIGHT = {ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.CLUSTER_AUTHORIZATION_FAILED}


class Written(NamedTuple):
    """The response to the produced record: its offset, and the broker's time with the moments before and after it."""

    offset: int
    broker_s: float
    sent_s: float
    received_s: float


class _StepError(Exception):
    """A step ends the trial; carries its verdict."""

    def __init__(self, verdict: Verdict) -> None:
        super().__init__(verdict.text)
        self.verdict = verdict


class _UncertainError(_StepError):
    """The topic may exist although its creation got no response or timed out."""


def try_record(access: DoctorAccess, host: str, port: int, topic: str) -> Iterator[Verdict]:
    """Create *topic*, produce and consume one record, delete the topic, and compare clocks; yields a verdict for each step."""
    connection = open_connection(access, host, port)
    try:
        if not _serves_batches(connection):
            yield skip(PRODUCE, "not tried, because the broker is older than Kafka 0.11")
            return
        yield _create_topic(connection, topic)
        try:
            yield from _try_topic(access, connection, topic)
        finally:
            deletion = _delete_topic(connection, topic)
        yield deletion
    except _StepError as problem:
        yield problem.verdict
        if isinstance(problem, _UncertainError):
            yield _delete_uncertain_topic(access, host, port, topic)
    finally:
        connection.close()


def _serves_batches(connection: WireConnection) -> bool:
    return all(
        key in connection.served and connection.served[key].last >= first for key, first in OLDEST_BATCHES.items()
    )


def _try_topic(access: DoctorAccess, connection: WireConnection, topic: str) -> Iterator[Verdict]:
    try:
        leader = _connect_leader(access, connection, topic)
        try:
            written = _produce(access, leader, topic)
            took_ms = (written.received_s - written.sent_s) * 1000
            yield accept(PRODUCE, f"one record to partition 0 with acks=all took {took_ms:.0f} ms")
            yield _consume(access, leader, topic, written.offset)
            yield judge_clock(written)
        finally:
            leader.close()
    except _StepError as problem:
        yield problem.verdict
    except StageError as problem:
        yield fail(PRODUCE, f"the leader of the topic cannot be reached: {problem.text}", problem.advice)
    except (ExchangeError, MalformedError) as problem:
        yield fail(PRODUCE, f"the leader {problem}", "read the broker's log")


def _create_topic(connection: WireConnection, topic: str) -> Verdict:
    configs = [CreatableTopicConfig(name="message.timestamp.type", value="LogAppendTime")]
    created = CreatableTopic(name=topic, num_partitions=1, replication_factor=1, configs=configs)
    request = CreateTopicsRequest(topics=[created], timeout_ms=REQUEST_TIMEOUT_MS)
    try:
        (result,) = connection.request(request, CreateTopicsResponse).topics
    except MissingApiError:
        raise _StepError(skip(TOPIC, "no record was tried, because the broker cannot create topics")) from None
    except ExchangeError as problem:
        raise _UncertainError(fail(TOPIC, f"the broker {problem}", "read the broker's log")) from None
    if not result.error_code:
        return accept(TOPIC, f"{topic} was created")
    reason = describe_code(result.error_code, result.error_message)
    text = f"no record was tried, because no topic could be created: {reason}"
    if result.error_code in _NO_RIGHT:
        raise _StepError(warn(TOPIC, text, _ADVISE_RIGHT.format("CREATE")))
    verdict = fail(TOPIC, text, "read the log of the controller")
    # The controller may still create it.
    raise _UncertainError(verdict) if result.error_code == ErrorCode.REQUEST_TIMED_OUT else _StepError(verdict)


def _connect_leader(access: DoctorAccess, connection: WireConnection, topic: str) -> WireConnection:
    request = MetadataRequest(topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False)
    for _ in range(LEADER_ATTEMPTS):
        metadata = connection.request(request, MetadataResponse, last=LAST_BY_NAME)
        addresses = {broker.node_id: (broker.host, broker.port) for broker in metadata.brokers}
        for partition in metadata.topics[0].partitions:
            if partition.leader_id in addresses:
                return open_connection(access, *addresses[partition.leader_id])
        access.network.sleep(LEADER_PAUSE_S)
    text = f"the topic has no leader after {LEADER_ATTEMPTS * LEADER_PAUSE_S:.0f} s"
    raise _StepError(fail(PRODUCE, text, "read the log of the controller"))


def _produce(access: DoctorAccess, leader: WireConnection, topic: str) -> Written:
    for _ in range(LEADER_ATTEMPTS):
        sent_s = access.network.now_s()
        batch = build_batch([(int(sent_s * 1000), _KEY, _VALUE, [])])
        data = TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=0, records=batch)])
        request = ProduceRequest(acks=-1, timeout_ms=REQUEST_TIMEOUT_MS, topic_data=[data])
        (outcome,) = leader.request(request, ProduceResponse, last=LAST_BY_NAME).responses[0].partition_responses
        if not outcome.error_code:
            received_s = access.network.now_s()
            return Written(outcome.base_offset, outcome.log_append_time_ms / 1000, sent_s, received_s)
        if outcome.error_code not in (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
            break
        access.network.sleep(LEADER_PAUSE_S)
    reason = describe_code(outcome.error_code, outcome.error_message)
    text = f"the leader does not accept a record: {reason}"
    raise _StepError(fail(PRODUCE, text, _advise_on_leader(outcome.error_code, "WRITE")))


def _consume(access: DoctorAccess, leader: WireConnection, topic: str, offset: int) -> Verdict:
    begin_s = access.network.now_s()
    partition = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
    topics = [FetchTopic(topic=topic, partitions=[partition])]
    request = FetchRequest(max_wait_ms=500, min_bytes=1, max_bytes=1 << 20, topics=topics)
    for _ in range(FETCH_ATTEMPTS):
        response = leader.request(request, FetchResponse, last=LAST_BY_NAME)
        (data,) = response.responses[0].partitions
        if data.error_code:
            reason = describe_code(data.error_code, None)
            text = f"the leader does not return the record: {reason}"
            return fail(CONSUME, text, _advise_on_leader(data.error_code, "READ"))
        records = bytes(data.records or b"")  # type: ignore[arg-type]  # a response that was read holds bytes
        values = [record.value for batch in split_batches(records) for record in read_records(batch)]
        if values:
            took_ms = (access.network.now_s() - begin_s) * 1000
            if values != [_VALUE]:
                return fail(
                    CONSUME, "the record that comes back is not the one that was produced", "check the leader's disks"
                )
            return accept(CONSUME, f"the record came back within {took_ms:.0f} ms")
    return fail(CONSUME, "the record does not come back", "see `kafkacompat status` for partitions without replicas")


def _advise_on_leader(code: int, right: str) -> str:
    if code in _NO_RIGHT:
        return _ADVISE_RIGHT.format(right)
    return "read the log of the leader, and see `kafkacompat status`"


def judge_clock(written: Written) -> Verdict:
    """Compare the broker's clock with this machine's, from the time at which the broker appended the record."""
    if written.broker_s < 0:
        return skip(CLOCK, "not compared, because the broker reports no time of appending")
    uncertainty_s = (written.received_s - written.sent_s) / 2
    ahead_s = written.broker_s - (written.sent_s + uncertainty_s)
    direction = "fast" if ahead_s >= 0 else "slow"
    text = (
        f"the broker's clock is {abs(ahead_s):.3f} s {direction} by this machine's, give or take {uncertainty_s:.3f} s"
    )
    if abs(ahead_s) <= TOLERATED_S + uncertainty_s:
        return accept(CLOCK, text)
    return warn(CLOCK, text, "let both keep time by NTP: retention, --timestamp and tokens go by the clock")


def _delete_uncertain_topic(access: DoctorAccess, host: str, port: int, topic: str) -> Verdict:
    """Delete the topic by another connection, as the first one may be broken."""
    try:
        connection = open_connection(access, host, port)
    except StageError as problem:
        return warn(DELETE, f"{topic} may be left, because {problem.text}", _advise_deletion(topic))
    try:
        return _delete_topic(connection, topic, may_be_missing=True)
    finally:
        connection.close()


def _advise_deletion(topic: str) -> str:
    return f"delete it: kafkacompat topics delete {topic}"


def _delete_topic(connection: WireConnection, topic: str, *, may_be_missing: bool = False) -> Verdict:
    request = DeleteTopicsRequest(
        topics=[DeleteTopicState(name=topic)], topic_names=[topic], timeout_ms=REQUEST_TIMEOUT_MS
    )
    advice, is_left = _advise_deletion(topic), "may be left" if may_be_missing else "is left"
    try:
        (result,) = connection.request(request, DeleteTopicsResponse).responses
    except ExchangeError as problem:
        return warn(DELETE, f"{topic} {is_left}, because the broker {problem}", advice)
    if may_be_missing and result.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        return accept(DELETE, f"{topic} does not exist")
    if result.error_code:
        reason = describe_code(result.error_code, result.error_message)
        return warn(DELETE, f"{topic} {is_left}: {reason}", advice)
    return accept(DELETE, f"{topic} was deleted")
