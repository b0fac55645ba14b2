"""TLS settings from properties: a listener's own before those of all, and contradictions in a sentence."""

from __future__ import annotations

import pytest

from kafkacompat.config import BrokerConfig, ConfigError
from kafkacompat.security.tls.settings import read_tls_settings

BASE = {"node.id": "1", "listeners": "SSL://:9093"}


def read(**given: str) -> object:
    properties = {**BASE, **{name.replace("_", "."): value for name, value in given.items()}}
    return read_tls_settings(BrokerConfig(properties), "SSL")


def test_a_listeners_own_property_counts_before_the_one_of_all() -> None:
    config = BrokerConfig(
        {
            **BASE,
            "ssl.keystore.location": "/all",
            "ssl.keystore.password": "p",
            "listener.name.ssl.ssl.keystore.location": "/own",
            "listener.name.ssl.ssl.client.auth": "required",
            "listener.name.other.ssl.keystore.location": "/other",
        }
    )
    settings = read_tls_settings(config, "SSL")
    assert settings.key_store.location == "/own"
    assert settings.key_store.password == "p"
    assert settings.client_auth == "required"
    assert settings.locations == ("/own",)


def test_defaults_are_those_of_kafka() -> None:
    settings = read_tls_settings(BrokerConfig(BASE), "SSL")
    assert (settings.client_auth, settings.versions, settings.checks_host_name) == (
        "none",
        ("TLSv1.2", "TLSv1.3"),
        True,
    )
    assert (settings.key_store.kind, settings.key_store.is_set, settings.mapping_rules) == ("JKS", False, "DEFAULT")


def test_an_empty_algorithm_leaves_the_check_of_host_names_out() -> None:
    config = BrokerConfig({**BASE, "ssl.endpoint.identification.algorithm": ""})
    assert not read_tls_settings(config, "SSL").checks_host_name


def test_secrets_are_not_in_the_repr() -> None:
    config = BrokerConfig(
        {
            **BASE,
            "ssl.keystore.type": "PEM",
            "ssl.keystore.key": "SECRET1",
            "ssl.keystore.certificate.chain": "c",
            "ssl.key.password": "SECRET2",
            "ssl.truststore.location": "/t",
            "ssl.truststore.password": "SECRET3",
        }
    )
    assert "SECRET" not in repr(read_tls_settings(config, "SSL"))


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"ssl_keystore_type": "DKS"}, "ssl.keystore.type=DKS is not served: it takes one of PEM, PKCS12, JKS"),
        (
            {"listener_name_ssl_ssl_keystore_type": "DKS"},
            "listener.name.ssl.ssl.keystore.type=DKS is not served",
        ),
        ({"ssl_enabled_protocols": "TLSv1.1"}, "ssl.enabled.protocols=TLSv1.1 is not served"),
        ({"ssl_enabled_protocols": ""}, "ssl.enabled.protocols= is not served"),
        ({"ssl_endpoint_identification_algorithm": "LDAPS"}, "LDAPS is not served: it takes https, or nothing"),
        ({"ssl_engine_factory_class": "a.B"}, "ssl.engine.factory.class=a.B is not served: no Java class runs here"),
        ({"ssl_keystore_key": "k", "ssl_keystore_certificate_chain": "c"}, "ssl.keystore.type=JKS does not go with"),
        ({"ssl_keystore_type": "PEM", "ssl_keystore_key": "k"}, "belong together: set both"),
        (
            {
                "ssl_keystore_type": "PEM",
                "ssl_keystore_location": "/k",
                "ssl_keystore_key": "k",
                "ssl_keystore_certificate_chain": "c",
            },
            "ssl.keystore.location=/k and certificates in the properties exclude each other",
        ),
        (
            {"ssl_keystore_type": "PEM", "ssl_keystore_location": "/k", "ssl_keystore_password": "p"},
            "ssl.keystore.password does not go with ssl.keystore.type=PEM",
        ),
        ({"ssl_keystore_location": "/k"}, "ssl.keystore.location=/k needs a password: set ssl.keystore.password"),
        ({"ssl_truststore_certificates": "c"}, "ssl.truststore.type=JKS does not go with certificates"),
        (
            {"ssl_truststore_type": "PEM", "ssl_truststore_location": "/t", "ssl_truststore_password": "p"},
            "ssl.truststore.password does not go with ssl.truststore.type=PEM: remove it",
        ),
    ],
)
def test_contradictions_are_told_in_a_sentence(given: dict[str, str], sentence: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read(**given)
    assert sentence in str(caught.value)
