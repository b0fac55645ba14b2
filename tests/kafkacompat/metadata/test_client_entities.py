"""Quotas and credentials in the store: keys and values are those of ZooKeeper-mode Kafka's znodes."""

from __future__ import annotations

import json

import pytest

from kafkacompat.metadata import codec
from kafkacompat.metadata.client_entities import (
    ClientConfig,
    Entity,
    format_client_key,
    format_client_values,
    make_entity,
    parse_client_key,
    parse_client_values,
)
from kafkacompat.metadata.draft import MetadataDraft
from kafkacompat.metadata.image import MetadataImage
from kafkacompat.metadata.store import ABSENT, StoreChange, StoreEntry, StoreError
from kafkacompat.security.scram import ScramCredential, ScramMechanism

CREDENTIAL = ScramCredential(b"salt", b"stored", b"server", 8192)
USER: Entity = (("user", "alice"),)
BOTH = ClientConfig({"producer_byte_rate": 1000.0}, {ScramMechanism.SHA_256: CREDENTIAL})
CREDENTIAL_TEXT = "salt=c2FsdA==,stored_key=c3RvcmVk,server_key=c2VydmVy,iterations=8192"


@pytest.mark.parametrize(
    ("entity", "key"),
    [
        ({"user": "alice"}, "/config/users/alice"),
        ({"user": None}, "/config/users/<default>"),
        ({"user": "<default>"}, "/config/users/%3Cdefault%3E"),
        ({"user": "CN=ä b/c*+~%"}, "/config/users/CN%3D%C3%A4%20b%2Fc%2A%2B%7E%25"),
        ({"client-id": "c"}, "/config/clients/c"),
        ({"client-id": None, "user": "alice"}, "/config/users/alice/clients/<default>"),
        ({"client-id": "clients", "user": None}, "/config/users/<default>/clients/clients"),
        ({"ip": "10.0.0.1"}, "/config/ips/10.0.0.1"),
        ({"ip": "::1"}, "/config/ips/%3A%3A1"),
        ({"ip": None}, "/config/ips/<default>"),
    ],
)
def test_keys(entity: dict[str, str | None], key: str) -> None:
    assert format_client_key(make_entity(entity.items())) == key
    assert parse_client_key(key) == make_entity(entity.items())


def test_values_of_a_user_with_a_quota_and_a_password() -> None:
    assert format_client_values(BOTH) == {"producer_byte_rate": "1000", "SCRAM-SHA-256": CREDENTIAL_TEXT}
    assert parse_client_values(format_client_values(BOTH)) == BOTH


@pytest.mark.parametrize(
    ("value", "text"), [(1.0, "1"), (12.5, "12.5"), (2.0**63, "9223372036854775808"), (7.0000001, "7.0000001")]
)
def test_numbers(value: float, text: str) -> None:
    assert format_client_values(ClientConfig({"q": value})) == {"q": text}
    assert parse_client_values({"q": text}).quotas == {"q": value}


def test_an_endless_quota() -> None:
    endless = ClientConfig({"request_percentage": float("inf")})
    assert parse_client_values(format_client_values(endless)) == endless


def test_committed_entities_are_read_again() -> None:
    draft = MetadataDraft(MetadataImage())
    draft.put_client(USER, BOTH)
    draft.put_client((("ip", None),), ClientConfig({"connection_creation_rate": 7.0}))
    entries = {change.key: StoreEntry(change.value or b"", 0) for change in draft.list_changes({})}
    assert json.loads(entries["/config/users/alice"].value)["version"] == 1
    assert codec.decode_image(entries).clients == draft.build_image().clients


def test_a_change_is_of_one_key_and_nothing_left_removes_it() -> None:
    before = MetadataImage(clients={USER: BOTH})
    draft = MetadataDraft(before)
    draft.put_client(USER, BOTH)
    assert draft.list_changes({"/config/users/alice": 4}) == []
    draft.put_client(USER, ClientConfig())
    assert draft.list_changes({"/config/users/alice": 4}) == [StoreChange("/config/users/alice", 4, None)]
    assert draft.build_image().clients == {} and before.clients == {USER: BOTH}
    draft.put_client(USER, BOTH._replace(credentials={}))
    (change,) = draft.list_changes({})
    assert (change.expected_version, json.loads(change.value or b"")["config"]) == (
        ABSENT,
        {"producer_byte_rate": "1000"},
    )


@pytest.mark.parametrize("key", ["/config/users/a/teams/b", "/config/users/a/clients"])
def test_keys_that_are_no_entity_s(key: str) -> None:
    with pytest.raises(StoreError, match=f"the metadata is damaged at {key}: "):
        codec.decode_image({key: StoreEntry(b'{"version":1,"config":{}}', 0)})


@pytest.mark.parametrize("config", ['{"producer_byte_rate":"fast"}', '{"SCRAM-SHA-256":"hunter2"}', "{"])
def test_an_error_of_damage_names_the_key_without_the_secret(config: str) -> None:
    entry = StoreEntry(f'{{"version":1,"config":{config}}}'.encode(), 0)
    with pytest.raises(StoreError, match="the metadata is damaged at /config/users/alice: ") as problem:
        codec.decode_image({"/config/users/alice": entry})
    assert "hunter2" not in str(problem.value)
