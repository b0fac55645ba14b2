"""Requests for the controller that reach another broker."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from twisted.internet.defer import Deferred, fail, succeed
from twisted.internet.task import Clock

from kafkacompat.client.errors import ConnectionLostError, RequestNotSentError
from kafkacompat.cluster.controller_link import NoBrokerError, NoControllerError
from kafkacompat.cluster.decisions.situation import TopicPartition
from kafkacompat.config.resources import ResourceType
from kafkacompat.handlers import CLUSTER_HANDLERS, HANDLERS, INTER_BROKER_HANDLERS
from kafkacompat.handlers.context import Peer
from kafkacompat.handlers.controller_apis import CARRIED_OUT_ANYWHERE, CONTROLLER_APIS
from kafkacompat.metadata.client_entities import ClientConfig, make_entity
from kafkacompat.security.principals import ANONYMOUS, unpack_principal
from kafkacompat.server.dispatcher import Dispatcher
from kafkacompat.server.emulation import emulate_release
from kafkacompat.server.forwarding import DEFAULT_PATIENCE_S, GRACE_S, RETRY_S
from kafkacompat.server.inter_broker import serve_brokers
from kafkacompat.wire.apis import find_api
from kafkacompat.wire.apis import incremental_alter_configs as changes
from kafkacompat.wire.apis.alter_client_quotas import AlterClientQuotasRequest, EntityData, EntryData, OpData
from kafkacompat.wire.apis.alter_configs import AlterableConfig, AlterConfigsRequest, AlterConfigsResource
from kafkacompat.wire.apis.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from kafkacompat.wire.apis.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from kafkacompat.wire.apis.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kafkacompat.wire.apis.create_acls import AclCreation, CreateAclsRequest
from kafkacompat.wire.apis.create_delegation_token import CreateDelegationTokenRequest
from kafkacompat.wire.apis.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from kafkacompat.wire.apis.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from kafkacompat.wire.apis.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from kafkacompat.wire.apis.delete_topics import DeleteTopicsRequest, DeleteTopicState
from kafkacompat.wire.apis.elect_leaders import ElectLeadersRequest, TopicPartitions
from kafkacompat.wire.apis.envelope import EnvelopeRequest, EnvelopeResponse
from kafkacompat.wire.apis.expire_delegation_token import ExpireDelegationTokenRequest
from kafkacompat.wire.apis.list_partition_reassignments import ListPartitionReassignmentsRequest
from kafkacompat.wire.apis.renew_delegation_token import RenewDelegationTokenRequest
from kafkacompat.wire.apis.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from kafkacompat.wire.compiler import decode_message, encode_message
from kafkacompat.wire.connection import RequestError
from kafkacompat.wire.errors import ErrorCode, KafkaError
from kafkacompat.wire.schema import Request, Response, Struct
from tests.fakes.cluster_role import FakeController, FakeLink, FakeRole
from tests.handlers.admin_node import AdminNode
from tests.kafkacompat.metadata.deferreds import has_fired, outcome
from tests.kafkacompat.server.listening import (
    CLIENT,
    CORRELATION_ID,
    ListenerWorld,
    decode_response,
    encode_request,
)

SEGMENT_BYTES = "segment.bytes"


def make_create_request(*names: str, timeout_ms: int = 1000) -> CreateTopicsRequest:
    topics = [CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in names]
    return CreateTopicsRequest(topics=topics, timeout_ms=timeout_ms)


def make_delete_request(version: int) -> DeleteTopicsRequest:
    if version > 5:
        return DeleteTopicsRequest(topics=[DeleteTopicState(name="t"), DeleteTopicState(name="absent")])
    return DeleteTopicsRequest(topic_names=["t", "absent"])


def alter_configs(version: int) -> AlterConfigsRequest:
    configs = [AlterableConfig(name=SEGMENT_BYTES, value="5000000")]
    return AlterConfigsRequest(
        resources=[
            AlterConfigsResource(resource_type=ResourceType.TOPIC, resource_name="t", configs=configs),
            AlterConfigsResource(resource_type=ResourceType.BROKER, resource_name="1", configs=[]),
        ]
    )


def change_configs(*resources: tuple[ResourceType, str, str, str]) -> changes.IncrementalAlterConfigsRequest:
    return changes.IncrementalAlterConfigsRequest(
        resources=[
            changes.AlterConfigsResource(
                resource_type=kind,
                resource_name=name,
                configs=[changes.AlterableConfig(name=config, config_operation=0, value=value)],
            )
            for kind, name, config, value in resources
        ]
    )


REQUESTS: dict[int, Callable[[int], Request]] = {
    30: lambda version: CreateAclsRequest(creations=[AclCreation(resource_type=2, resource_name="t")]),
    31: lambda version: DeleteAclsRequest(filters=[DeleteAclsFilter(resource_type_filter=2)]),
    19: lambda version: make_create_request("new", "t", "in/valid"),
    20: make_delete_request,
    33: alter_configs,
    37: lambda version: CreatePartitionsRequest(
        topics=[CreatePartitionsTopic(name=name, count=3, assignments=None) for name in ("t", "absent")], timeout_ms=9
    ),
    38: lambda version: CreateDelegationTokenRequest(max_lifetime_ms=-1),
    39: lambda version: RenewDelegationTokenRequest(hmac=b"secret"),
    40: lambda version: ExpireDelegationTokenRequest(hmac=b"secret"),
    43: lambda version: ElectLeadersRequest(
        topic_partitions=[TopicPartitions(topic="t", partitions=[0]), TopicPartitions(topic="u", partitions=[0, 1])]
    ),
    44: lambda version: change_configs((ResourceType.TOPIC, "t", SEGMENT_BYTES, "5000000")),
    45: lambda version: AlterPartitionReassignmentsRequest(
        topics=[
            ReassignableTopic(name="t", partitions=[ReassignablePartition(partition_index=0, replicas=[1])]),
            ReassignableTopic(name="u", partitions=[ReassignablePartition(partition_index=0, replicas=None)]),
        ]
    ),
    46: lambda version: ListPartitionReassignmentsRequest(),
    49: lambda version: AlterClientQuotasRequest(
        entries=[
            EntryData(
                entity=[EntityData(entity_type="user", entity_name="u")],
                ops=[OpData(key="producer_byte_rate", value=1000.0)],
            )
        ]
    ),
    51: lambda version: AlterUserScramCredentialsRequest(
        deletions=[ScramCredentialDeletion(name="absent", mechanism=1)],
        upsertions=[
            ScramCredentialUpsertion(name="u", mechanism=1, iterations=4096, salt=b"s" * 16, salted_password=b"p" * 32)
        ],
    ),
    57: lambda version: UpdateFeaturesRequest(feature_updates=[FeatureUpdateKey(feature="f", max_version_level=1)]),
}
REFUSED = {
    30: ErrorCode.SECURITY_DISABLED,
    31: ErrorCode.SECURITY_DISABLED,
    **dict.fromkeys((38, 39, 40), ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED),
}
"""Without an authorizer there are no ACLs, and a client that is not authenticated has no tokens."""
ALWAYS_REFUSED = (57, *REFUSED)
"""UpdateFeatures changes nothing."""
CASES = [(key, version) for key in CONTROLLER_APIS for version in HANDLERS[key].versions]


class Controller:
    """Broker 1, the controller, with a topic t of one partition that is being reassigned."""

    def __init__(self, clock: Clock) -> None:
        self.node = AdminNode()
        self.node.make_topic("t")
        image = self.node.controller.committed
        topic = image.topics["t"]
        moving = topic.partitions[0]._replace(replicas=(1, 2), adding_replicas=(2,))
        self.active = FakeController(image.with_topics({"t": topic._replace(partitions=(moving,))}))
        known, unknown = TopicPartition("t", 0), TopicPartition("u", 0)
        problem = KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "there is no such partition")
        self.active.outcomes = succeed({known: None, unknown: problem, TopicPartition("u", 1): problem})
        self.link = FakeLink()
        self.node.services.clock = clock
        self.node.services.cluster = FakeRole(self.link, self.active)
        self.dispatcher = serve_brokers(CLUSTER_HANDLERS, self.node.services)
        peer = Peer(listener_name="INTERNAL", host="10.0.0.6", port=5, local_host="10.0.0.5", local_port=9093)
        self.internal = ListenerWorld(self.dispatcher, clock, peer)
        self.external = ListenerWorld(Dispatcher(CLUSTER_HANDLERS, self.node.services), clock)

    def deliver(self, request: Request) -> Deferred[EnvelopeResponse]:
        """Answer a request of another broker, through the wire."""
        answering = self.internal.send(encode_request(request, 0))
        return answering.addCallback(decode_response, EnvelopeResponse, 0)


class Other:
    """Broker 2, whose image has no topics."""

    def __init__(self, clock: Clock, deliver: Callable[[Request], Deferred[Any]], *, peer: Peer = CLIENT) -> None:
        self.clock = clock
        self.node = AdminNode(node_id="2")
        self.link = FakeLink(deliver)
        self.role = FakeRole(self.link)
        self.node.services.node_id = 2
        self.node.services.clock = clock
        self.node.services.cluster = self.role
        self.listener = ListenerWorld(Dispatcher(CLUSTER_HANDLERS, self.node.services), clock, peer)

    def emulate(self, release: str) -> ListenerWorld:
        return ListenerWorld(emulate_release(release, CLUSTER_HANDLERS, self.node.services), self.clock)

    def start(self, request: Request, version: int) -> Deferred[bytes]:
        return self.listener.send(encode_request(request, version))

    def ask(self, request: Request, version: int) -> Any:
        return read_response(outcome(self.start(request, version)), request, version)


def read_response(data: bytes, request: Request, version: int) -> Any:
    return decode_response(data, find_api(request.API_KEY).response, version)


def error_codes(message: Struct) -> set[int]:
    codes = set()
    for name in message.FIELDS:
        value = getattr(message, name)
        if name == "error_code":
            codes.add(value)
        elif isinstance(value, list) and value and isinstance(value[0], Struct):
            codes.update(*(error_codes(item) for item in value))
    return codes


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def controller(clock: Clock) -> Controller:
    return Controller(clock)


@pytest.fixture
def other(clock: Clock, controller: Controller) -> Other:
    return Other(clock, controller.deliver)


def test_every_forwarded_api_is_covered() -> None:
    assert REQUESTS.keys() == CONTROLLER_APIS.keys()
    assert CONTROLLER_APIS.keys() >= CARRIED_OUT_ANYWHERE
    assert {key for key, version in CASES} == CONTROLLER_APIS.keys()


@pytest.mark.parametrize(("key", "version"), CASES)
def test_the_client_gets_the_controllers_response_byte_for_byte(key: int, version: int, clock: Clock) -> None:
    request = REQUESTS[key](version)
    through_other, direct = Controller(clock), Controller(clock)
    other = Other(clock, through_other.deliver)
    if key == 33:
        request.resources = request.resources[:1]  # type: ignore[attr-defined]
    data = encode_request(request, version)
    answer = outcome(other.listener.send(data))
    assert answer == outcome(direct.external.send(data))
    assert other.link.sent and answer[:4] == CORRELATION_ID.to_bytes(4, "big")
    assert 0 in error_codes(read_response(answer, request, version)) or key in ALWAYS_REFUSED
    assert through_other.active.asked == direct.active.asked
    assert through_other.node.controller.committed == direct.node.controller.committed
    assert other.node.holder.image.topics == {}


@pytest.mark.parametrize(("key", "version"), CASES)
def test_without_a_controller_each_api_is_refused_in_its_own_form(key: int, version: int, clock: Clock) -> None:
    request = REQUESTS[key](version)
    other = Other(clock, lambda _: fail(NoControllerError("the cluster has no controller at the moment")))
    if key == 33:
        request.resources = request.resources[:1]  # type: ignore[attr-defined]
    answering = other.start(request, version)
    patience_s = getattr(request, "timeout_ms", DEFAULT_PATIENCE_S * 1000) / 1000
    clock.pump([RETRY_S] * int(patience_s / RETRY_S + 2))
    response = read_response(outcome(answering), request, version)
    codes = error_codes(response)
    assert ErrorCode.NOT_CONTROLLER in codes and codes <= {0, ErrorCode.NOT_CONTROLLER}
    assert clock.getDelayedCalls() == []


def test_the_envelope_has_the_clients_address_and_principal(clock: Clock, controller: Controller) -> None:
    other = Other(clock, controller.deliver)
    other.ask(make_create_request("a"), 7)
    ((envelope, timeout_s),) = other.link.sent
    assert isinstance(envelope, EnvelopeRequest)
    assert envelope.client_host_address == bytes((10, 1, 1, 1))
    assert unpack_principal(envelope.request_principal or b"") == ANONYMOUS
    assert envelope.request_data == encode_request(make_create_request("a"), 7)
    assert timeout_s == DEFAULT_PATIENCE_S + GRACE_S


def test_the_controller_charges_the_client_of_another_broker(controller: Controller, other: Other) -> None:
    quotas = controller.node.services.quotas
    quotas.update({make_entity([("client-id", "test")]): ClientConfig({"controller_mutation_rate": 0.1})})
    first = other.ask(make_create_request("a", "b"), 7)
    assert [topic.error_code for topic in first.topics] == [0, 0]
    assert first.throttle_time_ms == 0
    second = other.ask(make_create_request("c"), 7)
    assert [topic.error_code for topic in second.topics] == [ErrorCode.THROTTLING_QUOTA_EXCEEDED]
    # Two partitions, of 1.1 that all windows allow.
    assert second.throttle_time_ms == 9000
    assert "c" not in controller.node.holder.image.topics


@pytest.mark.parametrize(
    ("host", "packed"),
    [
        ("::ffff:192.0.2.7", bytes((192, 0, 2, 7))),
        ("fe80::1%eth0", bytes.fromhex("fe800000000000000000000000000001")),
        ("client-1", bytes(4)),
    ],
)
def test_addresses_of_other_forms(host: str, packed: bytes, clock: Clock, controller: Controller) -> None:
    other = Other(clock, controller.deliver, peer=replace(CLIENT, host=host))
    other.ask(make_create_request("a"), 7)
    ((envelope, _),) = other.link.sent
    assert isinstance(envelope, EnvelopeRequest) and envelope.client_host_address == packed


@pytest.mark.parametrize(
    ("problem", "code"),
    [
        (NoControllerError("none"), ErrorCode.NOT_CONTROLLER),
        (NoBrokerError("gone"), ErrorCode.NOT_CONTROLLER),
        (RequestNotSentError("not sent"), ErrorCode.NOT_CONTROLLER),
        (ConnectionLostError("lost"), ErrorCode.REQUEST_TIMED_OUT),
    ],
)
def test_an_envelope_is_repeated_while_the_client_waits(problem: Exception, code: ErrorCode, clock: Clock) -> None:
    other = Other(clock, lambda _: fail(problem))
    answering = other.start(make_create_request("a", timeout_ms=1000), 7)
    clock.pump([RETRY_S] * 8)
    assert not has_fired(answering) and len(other.link.sent) == 9
    clock.pump([RETRY_S] * 3)
    (topic,) = read_response(outcome(answering), make_create_request(), 7).topics
    assert (topic.name, topic.error_code) == ("a", code) and topic.error_message


def test_a_new_controller_gets_the_repeated_envelope(clock: Clock, controller: Controller) -> None:
    other = Other(clock, lambda _: succeed(EnvelopeResponse(error_code=ErrorCode.NOT_CONTROLLER)))
    answering = other.start(make_create_request("a"), 7)
    assert not has_fired(answering)
    other.link.deliver = controller.deliver
    clock.advance(RETRY_S)
    assert read_response(outcome(answering), make_create_request(), 7).topics[0].error_code == 0
    assert "a" in controller.node.holder.image.topics


def test_a_broker_that_becomes_the_controller_answers_itself(clock: Clock) -> None:
    other = Other(clock, lambda _: fail(NoControllerError("none")))
    answering = other.start(make_create_request("a"), 7)
    other.link.is_local = True
    clock.advance(RETRY_S)
    assert read_response(outcome(answering), make_create_request(), 7).topics[0].error_code == 0
    assert "a" in other.node.holder.image.topics


@pytest.mark.parametrize("timeout_ms", [0, -1])
def test_a_client_without_patience_gets_one_attempt(timeout_ms: int, clock: Clock) -> None:
    other = Other(clock, lambda _: fail(NoControllerError("none")))
    assert (
        other.ask(make_create_request("a", timeout_ms=timeout_ms), 7).topics[0].error_code == ErrorCode.NOT_CONTROLLER
    )
    assert len(other.link.sent) == 1


def test_a_client_that_is_gone_ends_the_attempts(clock: Clock) -> None:
    other = Other(clock, lambda _: fail(NoControllerError("none")))
    answering = other.start(make_create_request("a"), 7)
    answering.addErrback(lambda _: None)
    answering.cancel()
    clock.pump([RETRY_S] * 5)
    assert len(other.link.sent) == 1 and clock.getDelayedCalls() == []


@pytest.mark.parametrize(
    ("response", "code"),
    [
        (EnvelopeResponse(error_code=ErrorCode.UNSUPPORTED_VERSION), ErrorCode.NOT_CONTROLLER),
        (EnvelopeResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED), ErrorCode.UNKNOWN_SERVER_ERROR),
        (EnvelopeResponse(response_data=None), ErrorCode.UNKNOWN_SERVER_ERROR),
        (EnvelopeResponse(response_data=b"\0\0"), ErrorCode.UNKNOWN_SERVER_ERROR),
        (EnvelopeResponse(response_data=b"\0\0\0\7...."), ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
)
def test_other_errors_are_not_repeated(response: EnvelopeResponse, code: ErrorCode, clock: Clock) -> None:
    other = Other(clock, lambda _: succeed(response))
    assert other.ask(make_create_request("a"), 7).topics[0].error_code == code
    assert len(other.link.sent) == 1


def test_topics_are_resolved_by_the_image_of_the_controller(clock: Clock, other: Other, controller: Controller) -> None:
    stale = controller.node.holder.image.with_topics({})
    controller.node.holder.publish(stale)
    assert [result.error_code for result in other.ask(make_delete_request(6), 6).responses] == [0, 3]
    assert "t" not in controller.node.controller.committed.topics


# Configurations


def test_loggers_are_changed_by_the_broker_itself(other: Other) -> None:
    request = change_configs((ResourceType.BROKER_LOGGER, "2", "kafkacompat.no.such.logger", "NO LEVEL"))
    (result,) = other.ask(request, 1).responses
    assert result.error_code == ErrorCode.INVALID_CONFIG and other.link.sent == []


def test_a_request_for_loggers_and_topics_is_divided(other: Other, controller: Controller) -> None:
    resources = [
        (ResourceType.TOPIC, "t", SEGMENT_BYTES, "5000000"),
        (ResourceType.BROKER_LOGGER, "2", "kafkacompat.test", "NO LEVEL"),
        (ResourceType.BROKER, "2", "log.cleaner.threads", "2"),
        (ResourceType.BROKER, "1", "log.cleaner.threads", "2"),
        (ResourceType.TOPIC, "absent", SEGMENT_BYTES, "5000000"),
    ]
    results = other.ask(change_configs(*resources), 1).responses
    assert [(result.resource_type, result.resource_name) for result in results] == [entry[:2] for entry in resources]
    assert [result.error_code for result in results] == [
        0,
        ErrorCode.INVALID_CONFIG,
        0,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]
    image = controller.node.holder.image
    assert image.config(ResourceType.TOPIC, "t") == {SEGMENT_BYTES: "5000000"}
    assert image.config(ResourceType.BROKER, "2") == {"log.cleaner.threads": "2"}
    assert len(other.link.sent) == 1


def test_a_divided_request_without_a_controller(clock: Clock) -> None:
    other = Other(clock, lambda _: fail(NoControllerError("none")))
    request = alter_configs(2)
    answering = other.start(request, 2)
    clock.pump([1.0] * 32)
    results = read_response(outcome(answering), request, 2).responses
    assert [result.error_code for result in results] == [ErrorCode.NOT_CONTROLLER, ErrorCode.INVALID_REQUEST]


# Old releases


@pytest.mark.parametrize("key", sorted(CONTROLLER_APIS.keys() - CARRIED_OUT_ANYWHERE))
def test_an_old_release_sends_clients_to_the_controller(key: int, other: Other) -> None:
    listener = other.emulate("3.9")
    version = listener.dispatcher.handlers[key].versions.last
    request = REQUESTS[key](version)
    response = read_response(outcome(listener.send(encode_request(request, version))), request, version)
    assert ErrorCode.NOT_CONTROLLER in error_codes(response) and other.link.sent == []


@pytest.mark.parametrize("key", sorted(CARRIED_OUT_ANYWHERE))
def test_an_old_release_changes_configurations_and_tokens_anywhere(key: int, other: Other) -> None:
    request = REQUESTS[key](1)
    response = read_response(outcome(other.emulate("2.8").send(encode_request(request, 1))), request, 1)
    expected = REFUSED.get(key, ErrorCode.NONE)
    assert expected in error_codes(response) and len(other.link.sent) == 1


def test_a_release_with_kraft_forwards(other: Other) -> None:
    answer = outcome(other.emulate("4.0").send(encode_request(make_create_request("a"), 7)))
    assert read_response(answer, make_create_request(), 7).topics[0].error_code == 0 and len(other.link.sent) == 1


# Listeners


def list_apis(listener: ListenerWorld) -> dict[int, tuple[int, int]]:
    request = ApiVersionsRequest(client_software_name="c", client_software_version="1")
    response = decode_response(outcome(listener.send(encode_request(request, 4))), ApiVersionsResponse, 4)
    return {api.api_key: (api.min_version, api.max_version) for api in response.api_keys}


def test_only_the_inter_broker_listener_serves_brokers(controller: Controller) -> None:
    apis = list_apis(controller.internal)
    for key, handler in INTER_BROKER_HANDLERS.items():
        assert apis[key] == (handler.versions.first, handler.versions.last)
        assert handler.versions == handler.request.VERSIONS
    controller.node.services.served = {key: handler.versions for key, handler in CLUSTER_HANDLERS.items()}
    assert list_apis(controller.external).keys() & INTER_BROKER_HANDLERS.keys() == set()
    assert HANDLERS.keys() & INTER_BROKER_HANDLERS.keys() == set()
    with pytest.raises(RequestError, match="API key 58 is not served"):
        outcome(controller.external.send(encode_request(EnvelopeRequest(), 0)))


def test_apis_of_kraft_are_not_served_in_a_cluster() -> None:
    assert HANDLERS.keys() - CLUSTER_HANDLERS.keys() == {55, 64, 80, 81}


def test_a_single_node_forwards_nothing() -> None:
    node = AdminNode()
    listener = ListenerWorld(Dispatcher(HANDLERS, node.services), node.services.clock)
    answer = outcome(listener.send(encode_request(make_create_request("a"), 7)))
    assert decode_response(answer, CreateTopicsResponse, 7).topics[0].error_code == 0


# The controller's side


def make_envelope(
    data: bytes, *, principal: bytes | None = b"\0\0\5User\nANONYMOUS\0\0", address: bytes = bytes(4)
) -> EnvelopeRequest:
    return EnvelopeRequest(request_data=data, request_principal=principal, client_host_address=address)


def error_of(controller: Controller, request: EnvelopeRequest) -> int:
    response = outcome(controller.deliver(request))
    assert (response.response_data is None) == bool(response.error_code)
    return response.error_code


CREATE = encode_request(make_create_request("a"), 7)


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (make_envelope(CREATE), ErrorCode.NONE),
        (make_envelope(CREATE + b"more"), ErrorCode.NONE),
        (make_envelope(CREATE, principal=None), ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE),
        (make_envelope(CREATE, principal=b"\0"), ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE),
        (make_envelope(CREATE, principal=b"\0\1\1\1\0\0"), ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE),
        (make_envelope(CREATE, principal=b"\0\0\5Us"), ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE),
        (make_envelope(CREATE, address=b""), ErrorCode.INVALID_REQUEST),
        (make_envelope(CREATE, address=bytes(5)), ErrorCode.INVALID_REQUEST),
        (make_envelope(encode_request(make_envelope(CREATE), 0)), ErrorCode.INVALID_REQUEST),
        (make_envelope(encode_request(ApiVersionsRequest(), 0)), ErrorCode.INVALID_REQUEST),
        (make_envelope(b"\0\4\0\0\0\0\0\0"), ErrorCode.INVALID_REQUEST),
        (make_envelope(b"\x7f\xff\0\0\0\0\0\0"), ErrorCode.UNSUPPORTED_VERSION),
        (make_envelope(b"\xff\xff\0\0\0\0\0\0"), ErrorCode.UNSUPPORTED_VERSION),
        (make_envelope(b"\0\x13\0\x08" + CREATE[4:]), ErrorCode.UNSUPPORTED_VERSION),
        (make_envelope(b"\0\x13\xff\xff" + CREATE[4:]), ErrorCode.UNSUPPORTED_VERSION),
        (make_envelope(b""), ErrorCode.UNSUPPORTED_VERSION),
    ],
)
def test_envelopes_of_all_kinds(request_: EnvelopeRequest, code: ErrorCode, controller: Controller) -> None:
    assert error_of(controller, request_) == code
    assert ("a" in controller.node.holder.image.topics) == (code == ErrorCode.NONE)


@pytest.mark.parametrize("key", sorted(CONTROLLER_APIS))
def test_truncated_requests_are_answered(key: int, clock: Clock) -> None:
    controller = Controller(clock)
    version = HANDLERS[key].versions.last
    data = encode_request(REQUESTS[key](version), version)
    codes = {error_of(controller, make_envelope(data[:size])) for size in range(len(data))}
    assert codes == {ErrorCode.UNSUPPORTED_VERSION}


@pytest.mark.parametrize("key", sorted(CONTROLLER_APIS))
def test_damaged_requests_are_answered(key: int, clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    rng = Random(key)
    version = HANDLERS[key].versions.last
    for _ in range(100):
        controller = Controller(clock)
        data = bytearray(encode_request(REQUESTS[key](version), version))
        for _ in range(rng.randint(1, 3)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        answering = controller.deliver(make_envelope(bytes(data)))
        clock.pump([0.01] * 20)
        clock.advance(2**31)
        assert outcome(answering).error_code in (0, ErrorCode.INVALID_REQUEST, ErrorCode.UNSUPPORTED_VERSION)
    assert not [record for record in caplog.records if record.exc_info]


def test_a_large_request_that_is_truncated(controller: Controller, clock: Clock) -> None:
    data = encode_request(make_create_request(*(f"topic-{number}" for number in range(3000))), 7)
    answering = controller.deliver(make_envelope(data[:-10]))
    clock.pump([0] * 100)
    assert outcome(answering).error_code == ErrorCode.UNSUPPORTED_VERSION


def test_large_requests_and_responses_are_forwarded(controller: Controller, clock: Clock) -> None:
    other = Other(clock, controller.deliver)
    names = [f"topic-{number}" for number in range(600)]
    answering = other.start(make_create_request(*names), 7)
    clock.pump([0] * 1000)
    assert [topic.error_code for topic in read_response(outcome(answering), make_create_request(), 7).topics] == [
        0
    ] * 600


def test_another_broker_than_the_controller_refuses_envelopes(controller: Controller) -> None:
    controller.link.is_local = False
    assert error_of(controller, make_envelope(CREATE)) == ErrorCode.NOT_CONTROLLER


def test_a_controller_that_resigns_lets_the_sender_look_for_the_new_one(controller: Controller) -> None:
    controller.active.outcomes = fail(KafkaError(ErrorCode.NOT_CONTROLLER, "resigned"))
    assert error_of(controller, make_envelope(encode_request(REQUESTS[43](2), 2))) == ErrorCode.NOT_CONTROLLER


def test_a_defect_is_answered_as_one(controller: Controller, caplog: pytest.LogCaptureFixture) -> None:
    controller.active.outcomes = fail(ZeroDivisionError("a defect"))
    response = outcome(controller.deliver(make_envelope(encode_request(REQUESTS[45](1), 1))))
    assert read_response(response.response_data or b"", REQUESTS[45](1), 1).error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    controller.active.outcomes = fail(ZeroDivisionError("a defect"))
    # Version 0 of ElectLeaders has no field for the error.
    assert error_of(controller, make_envelope(encode_request(REQUESTS[43](0), 0))) == ErrorCode.UNKNOWN_SERVER_ERROR
    assert "a defect" in caplog.text


def test_a_response_survives_the_wire() -> None:
    response: Response = EnvelopeResponse(response_data=b"data")
    assert decode_message(EnvelopeResponse, encode_message(response, 0), 0) == response
