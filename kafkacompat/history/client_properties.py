"""Translation of client properties for Kafka's command line to librdkafka, whose names are mostly the same."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path

from kafkacompat.config.java_properties import parse_properties
from kafkacompat.history.broker import RunError
from kafkacompat.storage.files.os_errors import describe_error

Properties = Mapping[str, str]

_RENAMED = {
    "ssl.truststore.certificates": "ssl.ca.pem",
    "ssl.keystore.certificate.chain": "ssl.certificate.pem",
    "ssl.keystore.key": "ssl.key.pem",
}
_JAAS_OPTION = re.compile(r'(\w+)\s*=\s*(?:"((?:\\.|[^"\\])*)"|([^\s";]+))')
_UNKNOWN = re.compile(r'No such configuration property: "(.*?)"')


def read_client_properties(path: Path) -> tuple[dict[str, str], list[str]]:
    """Read a file; returns the properties by librdkafka's names, and the names that it does not know. Raises RunError."""
    try:
        properties = parse_properties(path.read_text(encoding="latin-1"))
    except (OSError, ValueError) as problem:
        raise RunError(f"client properties cannot be read: {describe_error(problem)}") from problem
    config: dict[str, str] = {}
    for name, value in properties.items():
        config.update(_TRANSLATIONS.get(name, _rename)(name, value, properties))
    return _split_known(config)


def _split_known(config: dict[str, str]) -> tuple[dict[str, str], list[str]]:
    """Return the properties that librdkafka knows, and the other names, which Kafka's tools do not reject either."""
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient

    unknown: list[str] = []
    while True:
        known = {name: value for name, value in config.items() if name not in unknown}
        try:
            AdminClient({"log_level": 0, **known})
        except KafkaException as problem:
            if (name := _UNKNOWN.search(str(problem))) is None or name[1] not in known:
                raise RunError(f"librdkafka refuses the client properties: {problem.args[0].str()}") from problem
            unknown.append(name[1])
        else:
            return known, unknown


def _rename(name: str, value: str, _: Properties) -> dict[str, str]:
    return {_RENAMED.get(name, name): value}


def _drop(_name: str, _value: str, _: Properties) -> dict[str, str]:
    return {}


def _translate_login(name: str, value: str, _: Properties) -> dict[str, str]:
    options = {key: re.sub(r"\\(.)", r"\1", quoted) or plain for key, quoted, plain in _JAAS_OPTION.findall(value)}
    if not {"username", "password"} <= set(options):
        raise RunError(f"{name} names no username and password: librdkafka supports no other login module here")
    return {"sasl.username": options["username"], "sasl.password": options["password"]}


def _translate_truststore(name: str, value: str, properties: Properties) -> dict[str, str]:
    _check_store_type(name, "ssl.truststore.type", properties, "PEM")
    return {"ssl.ca.location": value}


def _translate_keystore(name: str, value: str, properties: Properties) -> dict[str, str]:
    if _check_store_type(name, "ssl.keystore.type", properties, "PEM", "PKCS12") == "PKCS12":
        return {"ssl.keystore.location": value}
    return {"ssl.certificate.location": value, "ssl.key.location": value}


def _check_store_type(name: str, type_name: str, properties: Properties, *readable: str) -> str:
    store_type = properties.get(type_name, "JKS").upper()
    if store_type not in readable:
        raise RunError(f"{name} has {type_name}={store_type}, but librdkafka reads only {' and '.join(readable)}")
    return store_type


def _translate_host_check(name: str, value: str, _: Properties) -> dict[str, str]:
    return {name: value or "none"}


_TRANSLATIONS: dict[str, Callable[[str, str, Properties], dict[str, str]]] = {
    "bootstrap.servers": _drop,
    "sasl.jaas.config": _translate_login,
    "ssl.truststore.location": _translate_truststore,
    "ssl.truststore.type": _drop,
    "ssl.truststore.password": _drop,
    "ssl.keystore.location": _translate_keystore,
    "ssl.keystore.type": _drop,
    "ssl.endpoint.identification.algorithm": _translate_host_check,
}
