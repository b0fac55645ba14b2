"""Files of --command-config in the properties of librdkafka."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest

from kafkacompat.cli.remote.errors import RemoteError
from kafkacompat.cli.remote.options import Target
from kafkacompat.cli.remote.records.client_settings import create_client, import_library, make_client_settings
from kafkacompat.cli.remote.records.consume_run import Selection, make_consumer_settings
from kafkacompat.cli.remote.records.failures import OptionError
from kafkacompat.cli.remote.records.positions import Start, StartKind
from kafkacompat.cli.remote.records.produce_run import Delivery, make_producer_settings
from tests.fakes.certificates import shared_authority, shared_member

MODULES = "org.apache.kafka.common.security"
ADDRESS = {"bootstrap.servers": "kafka:9092", "client.id": "kafkacompat"}


def read(folder: Path, **properties: str) -> dict[str, Any]:
    path = folder / "client.properties"
    path.write_text("".join(f"{name.replace('_', '.')}={value}\n" for name, value in properties.items()))
    return make_client_settings(Target("kafka:9092", path))


def test_no_file_is_plaintext() -> None:
    assert make_client_settings(Target("kafka:9092")) == ADDRESS


def test_tls_with_a_key(tmp_path: Path) -> None:
    member, authority = shared_member("client"), shared_authority()
    (tmp_path / "key.p12").write_bytes(member.pkcs12("secret"))
    (tmp_path / "trust.pem").write_text(authority.pem)
    settings = read(
        tmp_path,
        security_protocol="SSL",
        client_id="own",
        ssl_keystore_type="PKCS12",
        ssl_keystore_location=str(tmp_path / "key.p12"),
        ssl_keystore_password="secret",
        ssl_truststore_type="PEM",
        ssl_truststore_location=str(tmp_path / "trust.pem"),
        ssl_endpoint_identification_algorithm="",
    )
    assert settings["client.id"] == "own"
    assert settings["security.protocol"] == "SSL"
    assert settings["ssl.endpoint.identification.algorithm"] == "none"
    assert settings["ssl.ca.pem"] == authority.pem
    assert settings["ssl.certificate.pem"] == member.certificates_pem
    # librdkafka checks the key and the certificates when it makes a client.
    create_client(confluent_kafka.Producer, settings, "--producer-property")


def test_scram(tmp_path: Path) -> None:
    jaas = f'{MODULES}.scram.ScramLoginModule required username="alice" password="secret";'
    settings = read(tmp_path, security_protocol="SASL_PLAINTEXT", sasl_mechanism="SCRAM-SHA-256", sasl_jaas_config=jaas)
    login = {"sasl.mechanism": "SCRAM-SHA-256", "sasl.username": "alice", "sasl.password": "secret"}
    assert settings == {**ADDRESS, "security.protocol": "SASL_PLAINTEXT", **login}
    token = jaas.replace("required", 'required tokenauth="true"')
    with pytest.raises(RemoteError, match="librdkafka knows no delegation tokens"):
        read(tmp_path, security_protocol="SASL_PLAINTEXT", sasl_mechanism="SCRAM-SHA-256", sasl_jaas_config=token)


def test_bearer_tokens(tmp_path: Path) -> None:
    handler = f"{MODULES}.oauthbearer.internals.unsecured.OAuthBearerUnsecuredLoginCallbackHandler"
    jaas = f'{MODULES}.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="alice";'
    settings = read(
        tmp_path,
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="OAUTHBEARER",
        sasl_login_callback_handler_class=handler,
        sasl_jaas_config=jaas,
    )
    token, expires_at_s, subject, extensions = settings["oauth_cb"]("")
    assert (token.count("."), subject, extensions) == (2, "alice", {})
    assert expires_at_s > 1_700_000_000


def test_a_property_that_librdkafka_does_not_know() -> None:
    with pytest.raises(OptionError, match=r"\(No such configuration property: \"foo\"\): correct --producer-property"):
        create_client(confluent_kafka.Producer, {"foo": "bar"}, "--producer-property")


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    with pytest.raises(RemoteError, match=r"^confluent-kafka is not installed: run pip install '\.\[cli\]' in a clone"):
        import_library()


def test_a_consumer_without_a_group_commits_nothing() -> None:
    settings = make_consumer_settings({}, Selection("t"))
    assert settings["group.id"].startswith("kafkacompat-consume-")
    assert settings["enable.auto.commit"] is False


@pytest.mark.parametrize(
    ("selection", "reset"),
    [
        (Selection("t", group="g"), "earliest"),
        (Selection("t", group="g", follows=True), "latest"),
        (Selection("t", Start(StartKind.EARLIEST), group="g", follows=True), "earliest"),
        (Selection("t", follows=True), "earliest"),
    ],
)
def test_where_a_partition_without_an_offset_starts(selection: Selection, reset: str) -> None:
    settings = make_consumer_settings({}, selection)
    assert settings["auto.offset.reset"] == reset
    create_client(confluent_kafka.Consumer, settings, "--consumer-property").close()


def test_producers_are_idempotent_where_all_replicas_acknowledge() -> None:
    assert make_producer_settings({}, Delivery())["enable.idempotence"] is True
    assert make_producer_settings({}, Delivery("zstd", "1"))["enable.idempotence"] is False
    create_client(confluent_kafka.Producer, make_producer_settings({}, Delivery("zstd", "1")), "--producer-property")
