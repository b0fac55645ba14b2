"""SCRAM credentials: derived as RFC 5802 says, written as Kafka wrote them to ZooKeeper."""

from __future__ import annotations

import base64
import hashlib
import hmac

import pytest

from kafkacompat.security.scram import (
    ScramCredential,
    ScramMechanism,
    derive_credential,
    format_credential,
    parse_credential,
)

# The example of RFC 7677, section 3: user "user", password "pencil".
SALT = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
NONCE = "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
FIRST_MESSAGES = f"n=user,r=rOprNGfwEbeRWgbNEkqO,r={NONCE},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
AUTH_MESSAGE = f"{FIRST_MESSAGES},c=biws,r={NONCE}".encode()
PROOF = base64.b64decode("dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=")
SERVER_SIGNATURE = base64.b64decode("6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=")

CREDENTIAL = ScramCredential(b"salt", b"stored", b"server", 4096)
TEXT = "salt=c2FsdA==,stored_key=c3RvcmVk,server_key=c2VydmVy,iterations=4096"


def test_the_example_of_the_rfc() -> None:
    salted = hashlib.pbkdf2_hmac("sha256", b"pencil", SALT, 4096)
    credential = derive_credential(ScramMechanism.SHA_256, SALT, salted, 4096)
    assert (credential.salt, credential.iterations) == (SALT, 4096)
    assert hmac.digest(credential.server_key, AUTH_MESSAGE, "sha256") == SERVER_SIGNATURE
    signature = hmac.digest(credential.stored_key, AUTH_MESSAGE, "sha256")
    client_key = bytes(ours ^ theirs for ours, theirs in zip(signature, PROOF, strict=True))
    assert hashlib.sha256(client_key).digest() == credential.stored_key


def test_the_other_mechanism_has_longer_keys() -> None:
    credential = derive_credential(ScramMechanism.SHA_512, SALT, b"salted", 4096)
    assert (len(credential.stored_key), len(credential.server_key)) == (64, 64)
    assert [mechanism.sasl_name for mechanism in ScramMechanism] == ["SCRAM-SHA-256", "SCRAM-SHA-512"]


def test_text_as_kafka_wrote_it() -> None:
    assert format_credential(CREDENTIAL) == TEXT
    assert parse_credential(TEXT) == CREDENTIAL


@pytest.mark.parametrize(
    "text", ["", "salt=c2FsdA==", TEXT.replace("4096", "many"), TEXT.replace("c3Rvc", "hunter2!"), "hunter2"]
)
def test_an_error_of_damage_hides_the_secret(text: str) -> None:
    with pytest.raises(ValueError, match=r"^a SCRAM credential is malformed$") as problem:
        parse_credential(text)
    assert problem.value.__suppress_context__


def test_secrets_are_not_printed() -> None:
    assert "stored" not in repr(CREDENTIAL) and "4096" in repr(CREDENTIAL)
