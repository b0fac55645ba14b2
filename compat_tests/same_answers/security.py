"""Scripts about quotas, SCRAM credentials, ACLs and delegation tokens."""

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
from kafkacompat.wire.apis.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from kafkacompat.wire.apis.create_acls import AclCreation, CreateAclsRequest, CreateAclsResponse
from kafkacompat.wire.apis.create_delegation_token import (
    CreatableRenewers,
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from kafkacompat.wire.apis.delete_acls import DeleteAclsFilter, DeleteAclsRequest, DeleteAclsResponse
from kafkacompat.wire.apis.describe_acls import DescribeAclsRequest, DescribeAclsResponse
from kafkacompat.wire.apis.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)
from kafkacompat.wire.apis.describe_client_quotas import EntryData as Described
from kafkacompat.wire.apis.describe_delegation_token import (
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)
from kafkacompat.wire.apis.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    UserName,
)
from kafkacompat.wire.apis.expire_delegation_token import ExpireDelegationTokenRequest, ExpireDelegationTokenResponse
from kafkacompat.wire.apis.renew_delegation_token import RenewDelegationTokenRequest, RenewDelegationTokenResponse

EXACT, DEFAULT, ANY = range(3)
SHA_256, SHA_512 = 1, 2
ALL_RESOURCES, ALL_PATTERNS, ALL_OPERATIONS, ALL_PERMISSIONS = 1, 1, 1, 1
Entity = dict[str, str | None]


def alteration(entity: Entity | list[tuple[str, str | None]], *ops: tuple[str, float | None]) -> EntryData:
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
    ask("a user", alteration(user, ("producer_byte_rate", 1000.0), ("request_percentage", 12.5)))
    ask("again", alteration(user, ("producer_byte_rate", 1000.0)))
    ask("no operations", alteration(user))
    ask("remove", alteration(user, ("request_percentage", None)))
    ask("remove what is not there", alteration(user, ("request_percentage", None)))
    ask("remove an unknown key", alteration(user, ("frobnicate", None)))
    ask("checked only", alteration(user, ("consumer_byte_rate", 5.0)), only_check=True)
    ask("checked only and bad", alteration(user, ("consumer_byte_rate", -5.0)), only_check=True)
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
        ask(label, alteration(user, (key, value)))
    ask("one good, one bad", alteration(user, ("consumer_byte_rate", 77.0), ("frobnicate", 1.0)))
    ask("a key twice", alteration(user, ("consumer_byte_rate", 1.0), ("consumer_byte_rate", 2.0)))
    ask("set and remove", alteration(user, ("consumer_byte_rate", 1.0), ("consumer_byte_rate", None)))
    ask("a user twice", *(alteration(user, ("consumer_byte_rate", rate)) for rate in (31.0, 32.0)))
    until(lambda: quotas_of(script.port, name).get("consumer_byte_rate") == 31.0)
    script.ask("afterwards", everything_of(name), DescribeClientQuotasResponse, 1)
    ask(
        "good beside bad", alteration(user, ("consumer_byte_rate", None)), alteration({"user": name + "-b"}, ("x", 1.0))
    )
    until(lambda: "consumer_byte_rate" not in quotas_of(script.port, name))
    script.ask("at the end", everything_of(name), DescribeClientQuotasResponse, 1)


def quota_entities(script: Transcript, name: str) -> None:
    rate, connections = ("producer_byte_rate", 1000.0), ("connection_creation_rate", 7.0)

    def ask(label: str, entity: Entity | list[tuple[str, str | None]], op: tuple[str, float | None] = rate) -> None:
        request = AlterClientQuotasRequest(entries=[alteration(entity, op)])
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
        entries = [alteration(entity, op) for entity, op in zip(entities, ops, strict=True)]
        label = "remove" if remove else "set"
        script.ask(label, AlterClientQuotasRequest(entries=entries), AlterClientQuotasResponse, 1)

    def ask(label: str, *components: tuple[str, int, str | None]) -> None:
        parts = [ComponentData(entity_type=kind, match_type=how, match=match) for kind, how, match in components]
        for strict in (False, True):
            request = DescribeClientQuotasRequest(components=parts, strict=strict)
            script.ask_every_version(f"{label}{', strict' * strict}", request, DescribeClientQuotasResponse)

    alter(remove=False)
    until(lambda: len(quotas(script.port)) >= len(entities))
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
    until(lambda: not any(len(entry.entity) == 2 for entry in quotas(script.port)))
    ask("nothing left")


def quotas(port: int) -> list[Described]:
    """All quotas that a broker knows of; Kafka answers an alteration before its broker knows."""
    with RawClient(port) as probe:
        return probe.call(DescribeClientQuotasRequest(), DescribeClientQuotasResponse, 1).entries or []


def quotas_of(port: int, user: str) -> dict[str, float]:
    entries = [entry for entry in quotas(port) if entry.entity[0].entity_name == user]
    return {value.key: value.value for entry in entries for value in entry.values}


def credentials(port: int) -> dict[str, list[tuple[int, int]]]:
    """Mechanism and iterations of everybody's credentials."""
    with RawClient(port) as probe:
        results = probe.call(DescribeUserScramCredentialsRequest(), DescribeUserScramCredentialsResponse, 0).results
    return {each.user: sorted((info.mechanism, info.iterations) for info in each.credential_infos) for each in results}


def upsertion(user: str, mechanism: int = SHA_256, iterations: int = 4096, **more: bytes) -> ScramCredentialUpsertion:
    secrets = {"salt": b"salt", "salted_password": b"password", **more}
    return ScramCredentialUpsertion(name=user, mechanism=mechanism, iterations=iterations, **secrets)


def deletion(user: str, mechanism: int = SHA_256) -> ScramCredentialDeletion:
    return ScramCredentialDeletion(name=user, mechanism=mechanism)


def scram_credentials(script: Transcript, name: str) -> None:
    def alter(label: str, *changes: ScramCredentialUpsertion | ScramCredentialDeletion) -> None:
        request = AlterUserScramCredentialsRequest(
            deletions=[change for change in changes if isinstance(change, ScramCredentialDeletion)],
            upsertions=[change for change in changes if isinstance(change, ScramCredentialUpsertion)],
        )
        script.ask(label, request, AlterUserScramCredentialsResponse, 0)

    def describe(label: str, *users: str) -> None:
        request = DescribeUserScramCredentialsRequest(users=[UserName(name=user) for user in users])
        script.ask(label, request, DescribeUserScramCredentialsResponse, 0)

    alter("nothing")
    alter("two users", upsertion(name), upsertion(name + "-b", SHA_512, 16384))
    alter("another mechanism", upsertion(name, SHA_512, 5000))
    alter("again", upsertion(name, SHA_256, 8192))
    until(lambda: credentials(script.port).get(name) == [(SHA_256, 8192), (SHA_512, 5000)])
    describe("both", name, name + "-b")
    describe("one twice", name, name + "-b", name)
    describe("unknown", name, name + "-absent")
    describe("nobody", "")
    describe("all, empty")
    script.ask("all", DescribeUserScramCredentialsRequest(users=None), DescribeUserScramCredentialsResponse, 0)
    for iterations in (0, 4095, 16385, -1):
        alter(f"{iterations} iterations", upsertion(name, iterations=iterations))
    for mechanism in (0, 3, -1):
        alter(f"mechanism {mechanism}", upsertion(name, mechanism))
        alter(f"delete mechanism {mechanism}", deletion(name, mechanism))
    alter("no name", upsertion(""), deletion(""))
    alter("no salt", upsertion(name, salt=b""))
    alter("no password", upsertion(name, salted_password=b""))
    alter("twice", upsertion(name), upsertion(name, SHA_512))
    alter("thrice", upsertion(name), upsertion(name), upsertion(name))
    alter("delete twice", deletion(name), deletion(name, SHA_512))
    alter("delete and set", deletion(name), upsertion(name))
    alter("good beside bad", upsertion(name, iterations=9999), upsertion(name + "-b", iterations=1))
    alter("delete unknown", deletion(name + "-absent"))
    alter("delete unknown and set", deletion(name + "-absent"), upsertion(name + "-absent"))
    alter("delete another mechanism", deletion(name + "-b", SHA_256))
    until(lambda: credentials(script.port)[name] == [(SHA_256, 9999), (SHA_512, 5000)])
    describe("afterwards", name, name + "-b")
    alter("delete", deletion(name), deletion(name + "-b", SHA_512))
    until(lambda: credentials(script.port) == {name: [(SHA_512, 5000)]})
    describe("one left", name, name + "-b")
    alter("delete the last", deletion(name, SHA_512))
    until(lambda: not credentials(script.port))
    describe("none left")


def acls(script: Transcript, name: str) -> None:
    topic, literal, read, allow = 2, 3, 3, 3
    wanted = AclCreation(
        resource_type=topic, resource_name=name, resource_pattern_type=literal, principal="User:" + name,
        host="*", operation=read, permission_type=allow,
    )  # fmt: skip
    script.ask_every_version("create two", CreateAclsRequest(creations=[wanted, wanted]), CreateAclsResponse)
    script.ask_every_version("create none", CreateAclsRequest(creations=[]), CreateAclsResponse)
    describe = DescribeAclsRequest(
        resource_type_filter=ALL_RESOURCES, resource_name_filter=None, pattern_type_filter=ALL_PATTERNS,
        operation=ALL_OPERATIONS, permission_type=ALL_PERMISSIONS,
    )  # fmt: skip
    script.ask_every_version("describe", describe, DescribeAclsResponse)
    doomed = DeleteAclsFilter(
        resource_type_filter=topic, resource_name_filter=name, pattern_type_filter=literal, operation=ALL_OPERATIONS,
        permission_type=ALL_PERMISSIONS,
    )  # fmt: skip
    script.ask_every_version("delete two", DeleteAclsRequest(filters=[doomed, doomed]), DeleteAclsResponse)
    script.ask_every_version("unknown elements", DescribeAclsRequest(), DescribeAclsResponse)
    script.ask_every_version("create unknown", CreateAclsRequest(creations=[AclCreation()]), CreateAclsResponse)


def delegation_tokens(script: Transcript, name: str) -> None:
    renewers = [CreatableRenewers(principal_type="User", principal_name=name)]
    for label, request in {
        "create": CreateDelegationTokenRequest(renewers=renewers, max_lifetime_ms=-1),
        "create for another": CreateDelegationTokenRequest(
            owner_principal_type="User", owner_principal_name=name, max_lifetime_ms=1000
        ),
        "create for a strange renewer": CreateDelegationTokenRequest(
            renewers=[CreatableRenewers(principal_type="Team", principal_name=name)]
        ),
        "create for nobody": CreateDelegationTokenRequest(owner_principal_type="", owner_principal_name=""),
    }.items():
        script.ask_every_version(label, request, CreateDelegationTokenResponse)
    renew = RenewDelegationTokenRequest(hmac=b"hmac", renew_period_ms=1000)
    script.ask_every_version("renew", renew, RenewDelegationTokenResponse)
    expire = ExpireDelegationTokenRequest(hmac=b"hmac", expiry_time_period_ms=-1)
    script.ask_every_version("expire", expire, ExpireDelegationTokenResponse)
    owners = [DescribeDelegationTokenOwner(principal_type="User", principal_name=name)]
    for label, asked in {"describe all": None, "describe": owners, "describe none": []}.items():
        wanted = DescribeDelegationTokenRequest(owners=asked)
        script.ask_every_version(label, wanted, DescribeDelegationTokenResponse)


SCRIPTS = (
    alter_client_quotas,
    quota_entities,
    describe_client_quotas,
    scram_credentials,
    acls,
    delegation_tokens,
)
