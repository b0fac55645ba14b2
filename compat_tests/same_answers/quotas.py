"""Scripts about the quotas of users, client ids and addresses."""

from __future__ import annotations

import math
from typing import Any

from compat_tests.raw_client import RawClient, produce_request
from compat_tests.same_answers.transcript import OLDEST_SERVED, Transcript
from compat_tests.waiting import until
from kafkacompat.wire.apis.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    EntityData,
    EntryData,
    OpData,
)
from kafkacompat.wire.apis.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from kafkacompat.wire.apis.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from kafkacompat.wire.apis.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)
from kafkacompat.wire.apis.describe_client_quotas import EntryData as Described
from kafkacompat.wire.apis.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from kafkacompat.wire.apis.produce import ProduceRequest, ProduceResponse
from kafkacompat.wire.record_batch import build_batch
from kafkacompat.wire.schema import Request, Response

TOPIC_ID_VERSION = 13
EXACT, DEFAULT, ANY = range(3)
Entity = dict[str, str | None]


def make_alteration(entity: Entity | list[tuple[str, str | None]], *ops: tuple[str, float | None]) -> EntryData:
    """One entity's changes; a value of None removes."""
    pairs = entity.items() if isinstance(entity, dict) else entity
    return EntryData(
        entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in pairs],
        ops=[OpData(key=key, value=value or 0.0, remove=value is None) for key, value in ops],
    )


def everything_of(user: str) -> DescribeClientQuotasRequest:
    return DescribeClientQuotasRequest(components=[ComponentData(entity_type="user", match_type=EXACT, match=user)])


def alter_client_quotas(script: Transcript, name: str) -> None:
    user: Entity = {"user": name}

    def ask(label: str, *entries: EntryData, only_check: bool = False) -> None:
        request = AlterClientQuotasRequest(entries=list(entries), validate_only=only_check)
        script.ask_every_version(label, request, AlterClientQuotasResponse)

    ask("nothing")
    ask("a user", make_alteration(user, ("producer_byte_rate", 1000.0), ("request_percentage", 12.5)))
    ask("again", make_alteration(user, ("producer_byte_rate", 1000.0)))
    ask("no operations", make_alteration(user))
    ask("remove", make_alteration(user, ("request_percentage", None)))
    ask("remove what is not there", make_alteration(user, ("request_percentage", None)))
    ask("remove an unknown key", make_alteration(user, ("frobnicate", None)))
    ask("checked only", make_alteration(user, ("consumer_byte_rate", 5.0)), only_check=True)
    ask("checked only and bad", make_alteration(user, ("consumer_byte_rate", -5.0)), only_check=True)
    for label, key, value in (
        ("zero", "producer_byte_rate", 0.0),
        ("negative", "producer_byte_rate", -1.0),
        ("a fraction of bytes", "producer_byte_rate", 1.5),
        ("a tiny fraction of bytes", "producer_byte_rate", 7.0000001),
        ("2 to the 63", "consumer_byte_rate", 2.0**63),
        ("more than 64 bits", "consumer_byte_rate", 1e19),
        ("infinite bytes", "producer_byte_rate", math.inf),
        ("a fraction of mutations", "controller_mutation_rate", 0.25),
        ("an unknown key", "frobnicate", 1.0),
        ("a connection rate", "connection_creation_rate", 1.0),
        ("no key", "", 1.0),
    ):
        ask(label, make_alteration(user, (key, value)))
    ask("one good, one bad", make_alteration(user, ("consumer_byte_rate", 77.0), ("frobnicate", 1.0)))
    ask("a key twice", make_alteration(user, ("consumer_byte_rate", 1.0), ("consumer_byte_rate", 2.0)))
    ask("set and remove", make_alteration(user, ("consumer_byte_rate", 1.0), ("consumer_byte_rate", None)))
    ask("a user twice", *(make_alteration(user, ("consumer_byte_rate", rate)) for rate in (31.0, 32.0)))
    until(lambda: quotas_of(script.port, name).get("consumer_byte_rate") == 31.0)
    script.ask("afterwards", everything_of(name), DescribeClientQuotasResponse, 1)
    ask(
        "good beside bad",
        make_alteration(user, ("consumer_byte_rate", None)),
        make_alteration({"user": name + "-b"}, ("x", 1.0)),
    )
    until(lambda: "consumer_byte_rate" not in quotas_of(script.port, name))
    script.ask("at the end", everything_of(name), DescribeClientQuotasResponse, 1)


def quota_entities(script: Transcript, name: str) -> None:
    rate, connections = ("producer_byte_rate", 1000.0), ("connection_creation_rate", 7.0)

    def ask(label: str, entity: Entity | list[tuple[str, str | None]], op: tuple[str, float | None] = rate) -> None:
        request = AlterClientQuotasRequest(entries=[make_alteration(entity, op)])
        script.ask(label, request, AlterClientQuotasResponse, 1)

    ask("no entity", {})
    ask("an unknown type", {"team": name})
    ask("no type", {"": name})
    ask("an empty name", {"user": ""})
    ask("an empty client", {"user": name, "client-id": ""})
    ask("a type twice", [("user", name), ("user", name + "-b")])
    ask("a known and an unknown type", {"user": name, "team": name})
    ask("ip and user", {"ip": "10.0.0.1", "user": name}, connections)
    ask("ip and client", {"ip": "10.0.0.1", "client-id": name}, connections)
    ask("ip", {"ip": "10.0.0.1"}, connections)
    ask("ip of version 6", {"ip": "2001:db8::1"}, connections)
    ask("all ips", {"ip": None}, connections)
    ask("no ip", {"ip": "no.such.host.invalid"}, connections)
    ask("ip and bytes", {"ip": "10.0.0.1"})
    ask("ip and half a connection", {"ip": "10.0.0.1"}, ("connection_creation_rate", 0.5))
    ask("ip and too many connections", {"ip": "10.0.0.1"}, ("connection_creation_rate", 2.0**31))
    ask("strange names", {"user": "ä/b <default>%*~+", "client-id": "<default>"})
    for ip in ("10.0.0.1", "2001:db8::1", None):
        ask(f"remove ip {ip}", {"ip": ip}, ("connection_creation_rate", None))
    until(lambda: quotas_of(script.port, "<default>"))
    strange = [ComponentData(entity_type="client-id", match_type=EXACT, match="<default>")]
    script.ask("strange", DescribeClientQuotasRequest(components=strange), DescribeClientQuotasResponse, 1)
    ask("remove strange names", {"user": "ä/b <default>%*~+", "client-id": "<default>"}, ("producer_byte_rate", None))


def describe_client_quotas(script: Transcript, name: str) -> None:
    entities: list[Entity] = [
        {"user": name},
        {"user": None},
        {"client-id": name},
        {"client-id": None},
        {"user": name, "client-id": name},
        {"user": name, "client-id": None},
        {"user": None, "client-id": name},
        {"user": None, "client-id": None},
        {"ip": "10.1.1.1"},
        {"ip": None},
    ]
    numbered = list(enumerate(entities, start=1))

    def alter(remove: bool) -> None:
        keys = ["connection_creation_rate" if "ip" in entity else "producer_byte_rate" for entity in entities]
        ops = [(key, None if remove else float(number)) for key, (number, _) in zip(keys, numbered, strict=True)]
        entries = [make_alteration(entity, op) for entity, op in zip(entities, ops, strict=True)]
        label = "remove" if remove else "set"
        script.ask(label, AlterClientQuotasRequest(entries=entries), AlterClientQuotasResponse, 1)

    def ask(label: str, *components: tuple[str, int, str | None]) -> None:
        parts = [ComponentData(entity_type=kind, match_type=how, match=match) for kind, how, match in components]
        for strict in (False, True):
            request = DescribeClientQuotasRequest(components=parts, strict=strict)
            script.ask_every_version(f"{label}{', strict' * strict}", request, DescribeClientQuotasResponse)

    alter(remove=False)
    until(lambda: len(list_quotas(script.port)) >= len(entities))
    ask("everything")
    for kind in ("user", "client-id", "ip"):
        ask(f"any {kind}", (kind, ANY, None))
        ask(f"default {kind}", (kind, DEFAULT, None))
        ask(f"one {kind}", (kind, EXACT, "10.1.1.1" if kind == "ip" else name))
        ask(f"no such {kind}", (kind, EXACT, "absent"))
    ask("user and client", ("user", EXACT, name), ("client-id", EXACT, name))
    ask("user and any client", ("user", EXACT, name), ("client-id", ANY, None))
    ask("all defaults", ("user", DEFAULT, None), ("client-id", DEFAULT, None))
    ask("ip and user", ("ip", ANY, None), ("user", ANY, None))
    ask("a type twice", ("user", ANY, None), ("user", EXACT, name))
    ask("an unknown type", ("team", ANY, None))
    ask("no type", ("", ANY, None))
    ask("exact and null", ("user", EXACT, None))
    ask("exact and empty", ("user", EXACT, ""))
    ask("any and a name", ("user", ANY, name))
    ask("default and a name", ("user", DEFAULT, name))
    ask("an unknown match", ("user", 3, None))
    alter(remove=True)
    until(lambda: not any(len(entry.entity) == 2 for entry in list_quotas(script.port)))
    ask("nothing left")


def list_quotas(port: int) -> list[Described]:
    """All quotas that a broker knows of; Kafka answers an alteration before its broker knows."""
    with RawClient(port) as probe:
        return probe.call(DescribeClientQuotasRequest(), DescribeClientQuotasResponse, 1).entries or []


def quotas_of(port: int, user: str) -> dict[str, float]:
    entries = [entry for entry in list_quotas(port) if entry.entity[0].entity_name == user]
    return {value.key: value.value for entry in entries for value in entry.values}


def too_many_quotas(script: Transcript, name: str) -> None:
    entries = [make_alteration({"user": f"{name}-{number}"}, ("producer_byte_rate", 1.0)) for number in range(10_001)]
    script.ask("too many", AlterClientQuotasRequest(entries=entries), AlterClientQuotasResponse, 1)


USER = "ANONYMOUS"
BATCH_BYTES = 2000
ROUGHLY_MS = 100_000
"""Unit of throttle times that depend on the moment of the request; those of the scripts are far from the edges."""


def set_quota(script: Transcript, entity: Entity, key: str, value: float | None) -> None:
    """Set a quota, or remove it, without noting anything; it is in effect then."""
    request = AlterClientQuotasRequest(entries=[make_alteration(entity, (key, value))])
    answer = script.client.call(request, AlterClientQuotasResponse, 1)
    assert answer.entries[0].error_code == 0, answer
    script.settle()


def make_produce(topic: str, topic_id: bytes, version: int) -> ProduceRequest:
    """A request with one record of BATCH_BYTES, whose size does not depend on the topic's name alone."""
    batch = build_batch([(1_700_000_000_000, b"k", b"v" * BATCH_BYTES, [])])
    request = produce_request(topic, {0: batch})
    if version >= TOPIC_ID_VERSION:
        request.topic_data[0].topic_id = topic_id
    return request


def throttled_producers(script: Transcript, name: str) -> None:
    """The first request of a client: its throttle time follows from its size alone."""
    topic_id = script.create_topic(name)
    for version in range(OLDEST_SERVED[0], ProduceRequest.VERSIONS.last + 1):
        client_id = f"{name}-{version:02}"
        set_quota(script, {"client-id": client_id}, "producer_byte_rate", 100.0)
        with RawClient(script.port, client_id=client_id) as client:
            answer = client.call(make_produce(name, topic_id, version), ProduceResponse, version)
            script.note(f"v{version}", answer.throttle_time_ms)
            assert answer.throttle_time_ms > 0


def throttled_levels(script: Transcript, name: str) -> None:
    """The quota in force when that of each level is the strongest; each client has a rate of its own."""
    script.create_topic(name)
    client_ids = [f"{name}-{level}" for level in range(8)]
    for level, client_id in enumerate(client_ids):
        entities: list[Entity] = [
            {"user": USER, "client-id": client_id},
            {"user": USER, "client-id": None},
            {"user": USER},
            {"user": None, "client-id": client_id},
            {"user": None, "client-id": None},
            {"user": None},
            {"client-id": client_id},
            {"client-id": None},
        ]
        if entities[level] == {"user": None}:
            # Its client would have used the rate of the user before.
            continue
        limited = list(enumerate(entities))[level:]
        set_quotas(script, [(entity, 10.0 * (place + 1)) for place, entity in limited])
        with RawClient(script.port, client_id=client_id) as client:
            answer = client.call(make_produce(name, b"", 12), ProduceResponse, 12)
            script.note(f"level {level}", answer.throttle_time_ms)
        set_quotas(script, [(entity, None) for _, entity in limited])


def set_quotas(script: Transcript, rates: list[tuple[Entity, float | None]]) -> None:
    entries = [make_alteration(entity, ("producer_byte_rate", rate)) for entity, rate in rates]
    answer = script.client.call(AlterClientQuotasRequest(entries=entries), AlterClientQuotasResponse, 1)
    assert not any(entry.error_code for entry in answer.entries), answer
    script.settle()


def make_fetch(topic: str, topic_id: bytes, offset: int = 0, **fields: int) -> FetchRequest:
    partition = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1_000_000)
    topics = [FetchTopic(topic=topic, topic_id=topic_id, partitions=[partition])]
    session: dict[str, Any] = {"session_id": 0, "session_epoch": 0, **fields}
    return FetchRequest(max_wait_ms=100, min_bytes=1, max_bytes=1_000_000, topics=topics, **session)


def throttled_consumers(script: Transcript, name: str) -> None:
    """A first response with all bytes that the quota allows is more than it allows, by the bytes around them."""
    topic_id = script.create_topic(name)
    for _ in range(2):
        produced = script.client.call(make_produce(name, topic_id, 12), ProduceResponse, 12)
        assert produced.responses[0].partition_responses[0].error_code == 0
    for version in range(OLDEST_SERVED[1], FetchRequest.VERSIONS.last + 1):
        client_id = f"{name}-{version:02}"
        # It is less than both batches, and more than one.
        set_quota(script, {"client-id": client_id}, "consumer_byte_rate", 300.0)
        with RawClient(script.port, client_id=client_id) as client:
            answer = client.call(make_fetch(name, topic_id), FetchResponse, version)
            script.note(f"v{version}", answer)
            assert answer.throttle_time_ms > 0


def throttled_sessions(script: Transcript, name: str) -> None:
    """A session goes on after a response that was withheld."""
    topic_id = script.create_topic(name)
    set_quota(script, {"client-id": name}, "consumer_byte_rate", 300.0)
    for _ in range(2):
        script.client.call(make_produce(name, topic_id, 12), ProduceResponse, 12)
    with RawClient(script.port, client_id=name) as client:
        first = client.call(make_fetch(name, topic_id, session_epoch=0), FetchResponse, 12)
        assert first.throttle_time_ms > 0
        script.note("a session is not begun", (first.session_id, len(first.responses)))
    set_quota(script, {"client-id": name}, "consumer_byte_rate", 500.0)
    with RawClient(script.port, client_id=name) as client:
        first = client.call(make_fetch(name, topic_id, session_epoch=0), FetchResponse, 12)
        script.note("begun", (first.throttle_time_ms, first.responses))
        again = make_fetch(name, topic_id, 0, session_id=first.session_id, session_epoch=1)
        second = client.call(again, FetchResponse, 12)
        is_same_session = second.session_id == first.session_id
        script.note("withheld", (second.error_code, is_same_session, second.throttle_time_ms > 0, second.responses))


def throttled_mutations(script: Transcript, name: str) -> None:
    """A client that has used up its quota of changes; throttle times are rounded, as part of them passes meanwhile."""

    def ask(label: str, request: Request, answer: type[Response], versions: range) -> None:
        for version in versions:
            client_id = f"{name}-{label}-{version}"
            set_quota(script, {"client-id": client_id}, "controller_mutation_rate", 0.001)
            for topic in getattr(request, "topics", []):
                topic.name = f"{topic.name.partition('.')[0]}.{version}"
            with RawClient(script.port, client_id=client_id) as client:
                given: Any = client.call(request, answer, version)
            script.note(f"{label} v{version}: time", round(given.throttle_time_ms / ROUGHLY_MS))
            results = getattr(given, "topics", None) or given.results
            # Kafka takes the topics of some requests in the order of a hash table.
            script.note(f"{label} v{version}", sorted(topic.error_code for topic in results))

    topics = [CreatableTopic(name=f"{name}-{part}", num_partitions=1, replication_factor=1) for part in "ab"]
    ask("create", CreateTopicsRequest(topics=topics, timeout_ms=10_000), CreateTopicsResponse, range(2, 8))
    checks = [CreatableTopic(name=f"{name}-{part}", num_partitions=1, replication_factor=1) for part in "cd"]
    checking = CreateTopicsRequest(topics=checks, timeout_ms=10_000, validate_only=True)
    ask("check", checking, CreateTopicsResponse, range(5, 8))
    for version in range(4):
        script.create_topic(f"{name}-e.{version}")
        script.create_topic(f"{name}-f.{version}")
    growing = [CreatePartitionsTopic(name=f"{name}-{part}", count=2, assignments=None) for part in "ef"]
    request = CreatePartitionsRequest(topics=growing, timeout_ms=10_000)
    ask("grow", request, CreatePartitionsResponse, range(4))


SCRIPTS = (
    alter_client_quotas,
    quota_entities,
    describe_client_quotas,
    too_many_quotas,
    throttled_producers,
    throttled_levels,
    throttled_consumers,
    throttled_sessions,
    throttled_mutations,
)
