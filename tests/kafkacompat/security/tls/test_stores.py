"""Key stores and trust stores: both formats, encrypted keys, and a sentence for each thing that can be wrong."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timezone

import pytest

from kafkacompat.config import ConfigError
from kafkacompat.security.tls.settings import StoreSettings
from kafkacompat.security.tls.stores import describe_validity, read_key_store, read_trust_store
from tests.fakes.certificates import shared_authority, shared_member
from tests.fakes.memory_files import MemoryFiles

MEMBER = shared_member("broker-1")
PATH = "/keys"
KEY_STORE = StoreSettings("ssl.keystore", "PEM", PATH)
TRUST_STORE = StoreSettings("ssl.truststore", "PEM", PATH)


def files_of(data: bytes | str) -> MemoryFiles:
    files = MemoryFiles()
    files.open(PATH, create=True).append([encoded := data if isinstance(data, bytes) else data.encode()], len(encoded))
    return files


def in_one_line(pem: str) -> str:
    return " ".join(pem.split("\n"))


@pytest.mark.parametrize("kind", ["PKCS12", "JKS"])
def test_a_pkcs12_file_is_read_under_both_types(kind: str) -> None:
    settings = StoreSettings("ssl.keystore", kind, PATH, "secret")
    store = read_key_store(settings, files_of(MEMBER.pkcs12("secret")).read)
    assert store.chain == MEMBER.chain
    assert store.key.private_numbers() == MEMBER.key.private_numbers()


def test_a_pem_file_is_read() -> None:
    assert read_key_store(KEY_STORE, files_of(f"Bag Attributes\n{MEMBER.pem()}").read).chain == MEMBER.chain


def test_an_encrypted_pem_key_is_opened_by_its_password() -> None:
    settings = replace(KEY_STORE, key_password="k")
    assert read_key_store(settings, files_of(MEMBER.pem("k")).read).chain == MEMBER.chain


@pytest.mark.parametrize("form", [str, in_one_line])
def test_pem_texts_in_properties_may_have_blanks_for_line_breaks(form: type[str]) -> None:
    settings = replace(KEY_STORE, location=None, key=form(MEMBER.key_pem()), certificates=form(MEMBER.certificates_pem))
    assert read_key_store(settings, MemoryFiles().read).chain == MEMBER.chain


def test_trust_stores_of_all_forms_are_read() -> None:
    authority = shared_authority()
    expected = (authority.certificate,)
    assert read_trust_store(TRUST_STORE, files_of(authority.pem).read) == expected
    assert (
        read_trust_store(replace(TRUST_STORE, location=None, certificates=authority.pem), MemoryFiles().read)
        == expected
    )
    jks = StoreSettings("ssl.truststore", "JKS", PATH, "secret")
    assert read_trust_store(jks, files_of(authority.pkcs12).read) == expected
    assert read_trust_store(replace(TRUST_STORE, location=None), MemoryFiles().read) is None


@pytest.mark.parametrize(
    ("settings", "data", "sentence"),
    [
        (KEY_STORE, None, "ssl.keystore.location=/keys cannot be read: there is no such file or folder"),
        (KEY_STORE, "", "ssl.keystore.location=/keys has no private key in PEM"),
        (KEY_STORE, MEMBER.key_pem(), "ssl.keystore.location=/keys has no certificate"),
        (KEY_STORE, MEMBER.pem("k"), "ssl.keystore.location=/keys has an encrypted key: set ssl.key.password"),
        (replace(KEY_STORE, key_password="x"), MEMBER.pem("k"), "/keys: ssl.key.password does not open its key"),
        (
            KEY_STORE,
            "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n" + MEMBER.certificates_pem,
            "/keys: its key is damaged or of an unknown kind",
        ),
        (
            KEY_STORE,
            MEMBER.key_pem() + "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
            "/keys has a certificate that is damaged",
        ),
        (
            KEY_STORE,
            shared_member("other").key_pem() + MEMBER.certificates_pem,
            "the key does not belong to the first certificate, CN=broker-1: put that one first",
        ),
        (
            StoreSettings("ssl.keystore", "JKS", PATH, "x"),
            MEMBER.pkcs12("secret"),
            "ssl.keystore.password does not open the file, or it is damaged",
        ),
        (
            StoreSettings("ssl.keystore", "PKCS12", PATH, "secret"),
            shared_authority().pkcs12,
            "/keys has no private key",
        ),
        (
            StoreSettings("ssl.keystore", "JKS", PATH, "x"),
            b"\xfe\xed\xfe\xed\0\0\0\2",
            "/keys is a JKS file: convert it with `keytool -importkeystore -srckeystore /keys -destkeystore /keys.p12"
            " -deststoretype PKCS12` and name the new file",
        ),
        (
            StoreSettings("ssl.keystore", "JKS", PATH, "x"),
            MEMBER.pem(),
            "/keys is a PEM file: set ssl.keystore.type=PEM",
        ),
        (StoreSettings("ssl.keystore", "JKS", PATH, "x"), b"garbage", "/keys is no PKCS#12 file"),
        (
            StoreSettings("ssl.keystore", "PKCS12", PATH, "secret", key_password="other"),
            MEMBER.pkcs12("secret"),
            "a PKCS#12 file has one password, so ssl.key.password must be the same",
        ),
    ],
)
def test_what_is_wrong_with_a_key_store_is_said_in_a_sentence(
    settings: StoreSettings, data: bytes | str | None, sentence: str
) -> None:
    files = MemoryFiles() if data is None else files_of(data)
    with pytest.raises(ConfigError) as caught:
        read_key_store(settings, files.read)
    assert sentence in str(caught.value)
    assert "secret" not in str(caught.value).replace("ssl.key", "")


def test_a_trust_store_without_certificates_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"ssl\.truststore\.location=/keys has no certificate"):
        read_trust_store(TRUST_STORE, files_of("hello").read)


def test_validity_is_told_in_words() -> None:
    certificate = MEMBER.certificate
    assert describe_validity(certificate, datetime(2030, 1, 1, tzinfo=timezone.utc)) is None
    late = describe_validity(certificate, datetime(2130, 1, 1, tzinfo=timezone.utc))
    assert late == "the certificate CN=broker-1 has expired on 2120-01-01"
    early = describe_validity(certificate, datetime(2010, 1, 1, tzinfo=timezone.utc))
    assert early == "the certificate CN=broker-1 is valid only from 2019-12-31 on"
