"""Scripts about the quotas of users, client ids and addresses."""

from __future__ import annotations

import math

from compat_tests.raw_client import RawClient
from compat_tests.same_answers.transcript import Transcript
from compat_tests.waiting import until
from kafkacompat.wire.apis.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    EntityData,
    EntryData,
    OpData,
)
from kafkacompat.wire.apis.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)
from kafkacompat.wire.apis.describe_client_quotas import EntryData as Described

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


SCRIPTS = (alter_client_quotas, quota_entities, describe_client_quotas, too_many_quotas)
