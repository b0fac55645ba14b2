"""Client properties in Kafka's words and in librdkafka's."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkacompat.history.broker import RunError
from kafkacompat.history.client_properties import read_client_properties

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"


def read(folder: Path, text: str) -> tuple[dict[str, str], list[str]]:
    path = folder / "client.properties"
    path.write_text(text)
    return read_client_properties(path)


@pytest.mark.parametrize(
    ("text", "config"),
    [
        ("", {}),
        ("bootstrap.servers=a:1\nsocket.timeout.ms=1000", {"socket.timeout.ms": "1000"}),
        (
            f'sasl.mechanism=PLAIN\nsasl.jaas.config={PLAIN} \\\n  username="a b" password="c;\\\\"d";',
            {"sasl.mechanism": "PLAIN", "sasl.username": "a b", "sasl.password": 'c;"d'},
        ),
        (f"sasl.jaas.config={PLAIN} username=a password=b;", {"sasl.username": "a", "sasl.password": "b"}),
        ("ssl.endpoint.identification.algorithm=", {"ssl.endpoint.identification.algorithm": "none"}),
        ("ssl.truststore.type=PEM\nssl.truststore.location=/a\nssl.truststore.password=b", {"ssl.ca.location": "/a"}),
        (
            "ssl.keystore.type=PEM\nssl.keystore.location=/a\nssl.key.password=b",
            {"ssl.certificate.location": "/a", "ssl.key.location": "/a", "ssl.key.password": "b"},
        ),
        (
            "ssl.keystore.type=PKCS12\nssl.keystore.location=/a\nssl.keystore.password=b",
            {"ssl.keystore.location": "/a", "ssl.keystore.password": "b"},
        ),
        ("ssl.keystore.certificate.chain=a", {"ssl.certificate.pem": "a"}),
    ],
)
def test_what_kafka_says_is_said_to_librdkafka(tmp_path: Path, text: str, config: dict[str, str]) -> None:
    assert read(tmp_path, text) == (config, [])


def test_what_librdkafka_does_not_know_is_left_out_and_named(tmp_path: Path) -> None:
    text = "key.serializer=a\nmetadata.max.age.ms=1000\ninterceptor.classes=b"
    assert read(tmp_path, text) == ({"metadata.max.age.ms": "1000"}, ["key.serializer", "interceptor.classes"])


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (
            "ssl.truststore.location=/a",
            "ssl.truststore.location has ssl.truststore.type=JKS, but librdkafka",
        ),
        ("ssl.keystore.location=/a", "ssl.keystore.type=JKS, but librdkafka reads only PEM and PKCS12"),
        ("sasl.jaas.config=com.example.Login required;", "sasl.jaas.config names no username and password"),
        ("socket.timeout.ms=long", 'librdkafka refuses the client properties: Invalid value .* "socket.timeout.ms"'),
        ("a=\\u12", "client properties cannot be read: "),
    ],
)
def test_what_cannot_be_used_is_refused(tmp_path: Path, text: str, why: str) -> None:
    with pytest.raises(RunError, match=why):
        read(tmp_path, text)
