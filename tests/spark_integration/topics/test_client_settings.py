"""Files of properties, as java.util.Properties reads them."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_integration.errors import PipelineError
from spark_integration.topics.client_settings import read_kafka_options, read_properties


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "client.properties"


def test_names_and_values(file: Path) -> None:
    file.write_text(
        "# a comment\n! another\n\nsecurity.protocol = SASL_SSL\n  sasl.mechanism:PLAIN\nclient.id  job\n"
        "ssl.endpoint.identification.algorithm=\nalone\n"
    )
    assert read_properties(file) == {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "client.id": "job",
        "ssl.endpoint.identification.algorithm": "",
        "alone": "",
    }


def test_a_value_over_several_lines(file: Path) -> None:
    file.write_text(
        "sasl.jaas.config=org.apache.kafka.PlainLoginModule required \\\n"
        '    username="a=b" \\\n'
        '    password="c: d";\n'
        "client.id=job\\"
    )
    assert read_properties(file) == {
        "sasl.jaas.config": 'org.apache.kafka.PlainLoginModule required username="a=b" password="c: d";',
        "client.id": "job",
    }


@pytest.mark.parametrize(
    ("line", "name", "value"),
    [
        (r"ssl.keystore.key=-----BEGIN\n1\tA\n-----END", "ssl.keystore.key", "-----BEGIN\n1\tA\n-----END"),
        (r"password=a\\b\\", "password", "a\\b\\"),
        (r"password=\"\u00fc\#", "password", '"ü#'),
        (r"a\=b\ c\:d = e", "a=b c:d", "e"),
        ("password=a\\ \r", "password", "a "),
    ],
)
def test_escapes(file: Path, line: str, name: str, value: str) -> None:
    file.write_text(f"{line}\nnext=line\n")
    assert read_properties(file) == {name: value, "next": "line"}


def test_a_comment_does_not_continue(file: Path) -> None:
    file.write_text("# a comment \\\nclient.id=job\n")
    assert read_kafka_options(file) == {"kafka.client.id": "job"}


def test_a_file_that_is_no_text(file: Path) -> None:
    file.write_bytes(b"\x30\x82\xff")
    with pytest.raises(PipelineError, match=r"client\.properties is no file of properties: give one with lines"):
        read_properties(file)
