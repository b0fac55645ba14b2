"""AlterUserScramCredentials and DescribeUserScramCredentials, answered as Apache Kafka 4.3.1 answers them."""

from __future__ import annotations

import logging

import pytest

from kafkacompat.metadata import codec
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
from kafkacompat.wire.apis.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    UserName,
)
from kafkacompat.wire.errors import ErrorCode
from tests.handlers.admin_node import AdminNode
from tests.kafkacompat.metadata.deferreds import outcome

SHA_256, SHA_512 = 1, 2
Change = ScramCredentialDeletion | ScramCredentialUpsertion
UNACCEPTABLE = ErrorCode.UNACCEPTABLE_CREDENTIAL
UNSUPPORTED = ErrorCode.UNSUPPORTED_SASL_MECHANISM


def make_upsertion(
    user: str, mechanism: int = SHA_256, iterations: int = 4096, password: bytes = b"hunter2"
) -> ScramCredentialUpsertion:
    return ScramCredentialUpsertion(
        name=user, mechanism=mechanism, iterations=iterations, salt=b"salt", salted_password=password
    )


def make_deletion(user: str, mechanism: int = SHA_256) -> ScramCredentialDeletion:
    return ScramCredentialDeletion(name=user, mechanism=mechanism)


def alter(node: AdminNode, *changes: Change) -> dict[str, int]:
    """Each user's error code; every error has a message, and success has none."""
    request = AlterUserScramCredentialsRequest(
        deletions=[change for change in changes if isinstance(change, ScramCredentialDeletion)],
        upsertions=[change for change in changes if isinstance(change, ScramCredentialUpsertion)],
    )
    results = node.ask(request, AlterUserScramCredentialsResponse, 0).results
    assert all((result.error_message is None) == (result.error_code == 0) for result in results)
    assert len({result.user for result in results}) == len(results)
    return {result.user: result.error_code for result in results}


def describe(node: AdminNode, *users: str, everybody: bool = False) -> dict[str, list[tuple[int, int]] | int]:
    """Each user's mechanisms and iterations, or the error code."""
    wanted = None if everybody else [UserName(name=user) for user in users]
    response = node.ask(DescribeUserScramCredentialsRequest(users=wanted), DescribeUserScramCredentialsResponse, 0)
    assert response.error_code == 0
    return {
        result.user: result.error_code or [(info.mechanism, info.iterations) for info in result.credential_infos]
        for result in response.results
    }


def test_credentials_are_set_described_and_deleted() -> None:
    node = AdminNode()
    assert alter(node, make_upsertion("alice"), make_upsertion("bob", SHA_512, 16384)) == {"alice": 0, "bob": 0}
    assert alter(node, make_upsertion("alice", SHA_512, 5000)) == {"alice": 0}
    assert alter(node, make_upsertion("alice", SHA_256, 8192)) == {"alice": 0}
    everybody = {"alice": [(SHA_256, 8192), (SHA_512, 5000)], "bob": [(SHA_512, 16384)]}
    assert describe(node, everybody=True) == everybody
    assert describe(node) == everybody
    assert describe(node, "bob") == {"bob": [(SHA_512, 16384)]}
    assert alter(node, make_deletion("alice"), make_deletion("bob", SHA_512)) == {"alice": 0, "bob": 0}
    assert describe(node) == {"alice": [(SHA_512, 5000)]}
    assert alter(node, make_deletion("alice", SHA_512)) == {"alice": 0}
    assert describe(node) == {} and node.holder.image.clients == {}


def test_users_that_cannot_be_described() -> None:
    node = AdminNode()
    alter(node, make_upsertion("alice"))
    assert describe(node, "alice", "bob", "alice", "") == {
        "alice": ErrorCode.DUPLICATE_RESOURCE,
        "bob": ErrorCode.RESOURCE_NOT_FOUND,
        "": ErrorCode.RESOURCE_NOT_FOUND,
    }


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ([make_upsertion("alice", iterations=4095)], UNACCEPTABLE),
        ([make_upsertion("alice", iterations=16385)], UNACCEPTABLE),
        ([make_upsertion("alice", iterations=-1)], UNACCEPTABLE),
        ([make_upsertion("alice", password=b"")], UNACCEPTABLE),
        ([make_upsertion("alice", 0)], UNSUPPORTED),
        ([make_upsertion("alice", 3)], UNSUPPORTED),
        ([make_deletion("alice", -1)], UNSUPPORTED),
        ([make_deletion("alice", SHA_512)], ErrorCode.RESOURCE_NOT_FOUND),
        ([make_upsertion("alice"), make_upsertion("alice", SHA_512)], ErrorCode.DUPLICATE_RESOURCE),
        ([make_upsertion("alice"), make_upsertion("alice", 3), make_upsertion("alice")], ErrorCode.DUPLICATE_RESOURCE),
        ([make_upsertion("alice", 3), make_upsertion("alice")], UNSUPPORTED),
        ([make_deletion("alice"), make_upsertion("alice")], ErrorCode.DUPLICATE_RESOURCE),
        ([make_deletion("alice", SHA_512), make_upsertion("alice")], ErrorCode.RESOURCE_NOT_FOUND),
    ],
)
def test_changes_that_cannot_be_leave_the_user_alone_and_no_other(changes: list[Change], code: ErrorCode) -> None:
    node = AdminNode()
    alter(node, make_upsertion("alice", iterations=7777))
    assert alter(node, *changes, make_upsertion("bob")) == {"alice": code, "bob": 0}
    assert describe(node) == {"alice": [(SHA_256, 7777)], "bob": [(SHA_256, 4096)]}


def test_too_many_changes_are_refused_as_a_whole() -> None:
    node = AdminNode()
    users = [make_upsertion(str(number)) for number in range(10_001)]
    assert set(alter(node, *users).values()) == {ErrorCode.POLICY_VIOLATION}
    assert describe(node) == {}


def test_a_user_without_a_name() -> None:
    assert alter(AdminNode(), make_upsertion(""), make_deletion("")) == {"": UNACCEPTABLE}


def test_a_user_s_quotas_and_password_are_kept_together_and_change_apart() -> None:
    node = AdminNode()
    alter(node, make_upsertion("alice"))
    entry = EntryData(
        entity=[EntityData(entity_type="user", entity_name="alice")], ops=[OpData(key="producer_byte_rate", value=5.0)]
    )
    node.ask(AlterClientQuotasRequest(entries=[entry]), AlterClientQuotasResponse, 1)
    stored = outcome(node.store.load())
    assert [key for key in stored if key.startswith("/config")] == ["/config/users/alice"]
    assert codec.decode_image(stored).clients == node.holder.image.clients
    assert alter(node, make_deletion("alice")) == {"alice": 0}
    (config,) = node.holder.image.clients.values()
    assert config.quotas == {"producer_byte_rate": 5.0}


def test_the_password_itself_is_nowhere(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    node = AdminNode()
    alter(node, make_upsertion("alice", password=b"hunter2"), make_upsertion("bob", password=b"hunter2", iterations=1))
    node.store.failing = True
    assert alter(node, make_upsertion("alice", iterations=5000)) == {"alice": ErrorCode.KAFKA_STORAGE_ERROR}
    assert "hunter2" not in caplog.text + repr(node.holder.image)
    assert b"hunter2" not in b"".join(entry.value for entry in node.store.entries.values())
    assert "stored_key" not in caplog.text + repr(node.holder.image)
