"""Scripts about SCRAM credentials, ACLs and delegation tokens."""

from __future__ import annotations

from collections.abc import Iterator

from compat_tests.raw_client import RawClient
from compat_tests.same_answers.transcript import Transcript
from compat_tests.waiting import until
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
from kafkacompat.wire.schema import Request, Response

SHA_256, SHA_512 = 1, 2
ALL_RESOURCES, ALL_PATTERNS, ALL_OPERATIONS, ALL_PERMISSIONS = 1, 1, 1, 1
Question = tuple[str, Request, type[Response]]


def list_credentials(port: int) -> dict[str, list[tuple[int, int]]]:
    """Return mechanism and iterations of all users' credentials."""
    with RawClient(port) as probe:
        results = probe.call(DescribeUserScramCredentialsRequest(), DescribeUserScramCredentialsResponse, 0).results
    return {
        result.user: sorted((info.mechanism, info.iterations) for info in result.credential_infos) for result in results
    }


def make_upsertion(
    user: str, mechanism: int = SHA_256, iterations: int = 4096, **more: bytes
) -> ScramCredentialUpsertion:
    secrets = {"salt": b"salt", "salted_password": b"password", **more}
    return ScramCredentialUpsertion(name=user, mechanism=mechanism, iterations=iterations, **secrets)


def make_deletion(user: str, mechanism: int = SHA_256) -> ScramCredentialDeletion:
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
    alter("two users", make_upsertion(name), make_upsertion(name + "-b", SHA_512, 16384))
    alter("another mechanism", make_upsertion(name, SHA_512, 5000))
    alter("again", make_upsertion(name, SHA_256, 8192))
    until(lambda: list_credentials(script.port).get(name) == [(SHA_256, 8192), (SHA_512, 5000)])
    describe("both", name, name + "-b")
    describe("one twice", name, name + "-b", name)
    describe("unknown", name, name + "-absent")
    describe("nobody", "")
    describe("all, empty")
    script.ask("all", DescribeUserScramCredentialsRequest(users=None), DescribeUserScramCredentialsResponse, 0)
    for iterations in (0, 4095, 16385, -1):
        alter(f"{iterations} iterations", make_upsertion(name, iterations=iterations))
    for mechanism in (0, 3, -1):
        alter(f"mechanism {mechanism}", make_upsertion(name, mechanism))
        alter(f"delete mechanism {mechanism}", make_deletion(name, mechanism))
    alter("no name", make_upsertion(""), make_deletion(""))
    alter("no salt", make_upsertion(name, salt=b""))
    alter("no password", make_upsertion(name, salted_password=b""))
    alter("twice", make_upsertion(name), make_upsertion(name, SHA_512))
    alter("thrice", make_upsertion(name), make_upsertion(name), make_upsertion(name))
    alter("delete twice", make_deletion(name), make_deletion(name, SHA_512))
    alter("delete and set", make_deletion(name), make_upsertion(name))
    alter("good beside bad", make_upsertion(name, iterations=9999), make_upsertion(name + "-b", iterations=1))
    alter("delete unknown", make_deletion(name + "-absent"))
    alter("delete unknown and set", make_deletion(name + "-absent"), make_upsertion(name + "-absent"))
    alter("delete another mechanism", make_deletion(name + "-b", SHA_256))
    until(lambda: list_credentials(script.port)[name] == [(SHA_256, 9999), (SHA_512, 5000)])
    describe("afterwards", name, name + "-b")
    alter("delete", make_deletion(name), make_deletion(name + "-b", SHA_512))
    until(lambda: list_credentials(script.port) == {name: [(SHA_512, 5000)]})
    describe("one left", name, name + "-b")
    alter("delete the last", make_deletion(name, SHA_512))
    until(lambda: not list_credentials(script.port))
    describe("none left")


def acl_questions(name: str) -> Iterator[Question]:
    topic, literal, read, allow = 2, 3, 3, 3
    wanted = AclCreation(
        resource_type=topic, resource_name=name, resource_pattern_type=literal, principal="User:" + name,
        host="*", operation=read, permission_type=allow,
    )  # fmt: skip
    yield "create two", CreateAclsRequest(creations=[wanted, wanted]), CreateAclsResponse
    yield "create none", CreateAclsRequest(creations=[]), CreateAclsResponse
    describe = DescribeAclsRequest(
        resource_type_filter=ALL_RESOURCES, resource_name_filter=None, pattern_type_filter=ALL_PATTERNS,
        operation=ALL_OPERATIONS, permission_type=ALL_PERMISSIONS,
    )  # fmt: skip
    yield "describe", describe, DescribeAclsResponse
    doomed = DeleteAclsFilter(
        resource_type_filter=topic, resource_name_filter=name, pattern_type_filter=literal, operation=ALL_OPERATIONS,
        permission_type=ALL_PERMISSIONS,
    )  # fmt: skip
    yield "delete two", DeleteAclsRequest(filters=[doomed, doomed]), DeleteAclsResponse
    yield "unknown elements", DescribeAclsRequest(), DescribeAclsResponse
    yield "create unknown", CreateAclsRequest(creations=[AclCreation()]), CreateAclsResponse


def token_questions(name: str) -> Iterator[Question]:
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
        yield label, request, CreateDelegationTokenResponse
    yield "renew", RenewDelegationTokenRequest(hmac=b"hmac", renew_period_ms=1000), RenewDelegationTokenResponse
    yield "expire", ExpireDelegationTokenRequest(hmac=b"hmac", expiry_time_period_ms=-1), ExpireDelegationTokenResponse
    owners = [DescribeDelegationTokenOwner(principal_type="User", principal_name=name)]
    for label, asked in {"describe all": None, "describe": owners, "describe none": []}.items():
        yield label, DescribeDelegationTokenRequest(owners=asked), DescribeDelegationTokenResponse


def acls(script: Transcript, name: str) -> None:
    for question in acl_questions(name):
        script.ask_every_version(*question)


def delegation_tokens(script: Transcript, name: str) -> None:
    for question in token_questions(name):
        script.ask_every_version(*question)


def first_acls(script: Transcript, name: str) -> None:
    for question in acl_questions(name):
        script.ask_dropped_versions(*question)


def first_delegation_tokens(script: Transcript, name: str) -> None:
    for question in token_questions(name):
        script.ask_dropped_versions(*question)


SCRIPTS = (
    scram_credentials,
    acls,
    delegation_tokens,
)
OLD_SCRIPTS = (first_acls, first_delegation_tokens)
