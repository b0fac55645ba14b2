"""Certificates that replace others, and brokers that must trust each other."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest

from kafkacompat.config import BrokerConfig, ConfigError
from kafkacompat.security.tls.credentials import (
    Credentials,
    check_mutual_trust,
    check_replacement,
    load_credentials,
)
from kafkacompat.security.tls.settings import read_tls_settings
from tests.fakes.certificates import Authority, Member, issue_itself, shared_authority, shared_member
from tests.fakes.memory_files import MemoryFiles
from tests.kafkacompat.server.tls_world import make_properties

HOSTS = ("broker-1", "10.0.0.1")


def load(member: Member, **changes: str) -> Credentials:
    properties = make_properties(member, **changes)
    present = {name: value for name, value in properties.items() if value != "-"}
    return load_credentials(read_tls_settings(BrokerConfig(present), "SSL"), MemoryFiles().read)


def issue(name: str, *hosts: str) -> Member:
    return shared_authority().issue(name, hosts)


def test_a_certificate_with_the_same_names_may_replace_another() -> None:
    check_replacement(load(issue("a", *HOSTS)), load(issue("A", *HOSTS, "more")))


def test_another_name_needs_permission() -> None:
    before = load(issue("a", *HOSTS))
    with pytest.raises(
        ConfigError, match=r"is for CN=b, the present one for CN=a: use the same name, or set ssl\.allow\.dn"
    ):
        check_replacement(before, load(issue("b", *HOSTS)))
    check_replacement(before, load(issue("b", *HOSTS), ssl_allow_dn_changes="true"))


def test_a_missing_alternative_name_needs_permission() -> None:
    before = load(issue("a", *HOSTS))
    with pytest.raises(ConfigError, match=r"lacks the alternative names 10\.0\.0\.1 of the present one"):
        check_replacement(before, load(issue("a", "broker-1")))
    check_replacement(before, load(issue("a", "broker-1"), ssl_allow_san_changes="true"))
    with pytest.raises(ConfigError, match=r"lacks the alternative names 10\.0\.0\.1, broker-1"):
        check_replacement(before, load(shared_authority().issue("a", ())))


def test_a_running_listener_cannot_get_its_first_trust_store() -> None:
    without = load(shared_member("a"), ssl_truststore_certificates="-")
    with pytest.raises(ConfigError, match="a running listener without a trust store cannot get one"):
        check_replacement(without, load(shared_member("a")))


def test_brokers_with_one_authority_trust_each_other() -> None:
    for client_auth in ("none", "requested", "required"):
        credentials = [load(shared_member(name), ssl_client_auth=client_auth) for name in ("a", "b")]
        check_mutual_trust(*credentials)


@pytest.mark.parametrize("client_auth", ["none", "required"])
def test_brokers_of_different_authorities_do_not(client_auth: str) -> None:
    stranger = load(Authority("other").issue("b"), ssl_client_auth=client_auth)
    with pytest.raises(ConfigError) as caught:
        check_mutual_trust(stranger)
    words = "brokers with these stores cannot connect to each other: the certificate 'CN=other' is not accepted"
    assert words in str(caught.value)


def test_a_trusted_certificate_needs_no_authority() -> None:
    """As in Java, a certificate in the trust store is trusted by itself."""
    alone = issue_itself("alone")
    check_mutual_trust(load(alone, ssl_truststore_certificates=alone.certificates_pem))


def test_a_listener_without_a_key_store_is_refused() -> None:
    settings = read_tls_settings(BrokerConfig({"node.id": "1", "listeners": "SSL://:9093"}), "SSL")
    with pytest.raises(ConfigError, match=r"TLS needs a key and its certificate: set ssl\.keystore\.location"):
        load_credentials(settings, MemoryFiles().read)


def test_an_expired_certificate_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    end = datetime(2021, 1, 1, tzinfo=timezone.utc)
    credentials = load(shared_authority().issue("old", end=end))
    credentials.warn_of_validity("SSL", datetime(2022, 1, 1, tzinfo=timezone.utc))
    assert "listener SSL: the certificate CN=old has expired on 2021-01-01" in caplog.text


def test_cipher_suites_choose_the_versions() -> None:
    only_new = load(shared_member("a"), ssl_cipher_suites="TLS_AES_128_GCM_SHA256")
    only_old = load(shared_member("a"), ssl_cipher_suites="TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256")
    check_mutual_trust(only_new)
    check_mutual_trust(only_old)
    with pytest.raises(ConfigError, match="cannot connect"):
        check_mutual_trust(only_new, only_old)


def test_the_context_of_a_client_is_built_at_its_first_use() -> None:
    credentials = load(shared_member("a"))
    assert "client" not in vars(credentials)
    check_mutual_trust(credentials)
    assert credentials.client is vars(credentials)["client"]
