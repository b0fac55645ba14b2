"""Configs, and the notifications of their changes."""

from __future__ import annotations

import json

import pytest

from kafkacompat.metadata.store import StoreError
from kafkacompat.metadata.znodes.configs import (
    decode_config,
    decode_config_change,
    encode_config,
    encode_config_change,
)

PATH = "/config/topics/orders"
CHANGE = "/config/changes/config_change_0000000003"


def test_configs_of_an_entity() -> None:
    value = encode_config(PATH, {"retention.ms": "1000", "a": "b=ü"})
    assert json.loads(value) == {"version": 1, "config": {"retention.ms": "1000", "a": "b=ü"}}
    assert decode_config(PATH, value) == {"retention.ms": "1000", "a": "b=ü"}


@pytest.mark.parametrize("value", [b"", b"{}", b'{"version":1,"config":null}', b'{"version":1,"config":{}}'])
def test_an_entity_without_configs(value: bytes) -> None:
    assert decode_config(PATH, value) == {}


def test_a_change_keeps_unknown_fields() -> None:
    before = b'{"version":2,"config":{"a":"1"},"origin":"tool"}'
    assert json.loads(encode_config(PATH, {"b": "2"}, before)) == {
        "version": 2,
        "config": {"b": "2"},
        "origin": "tool",
    }


@pytest.mark.parametrize(
    "value", [b'{"config":{"SCRAM-SHA-256":5}}', b'{"config":"hunter2"}', b'{"config":["hunter2"]}', b'{"config":{"a":']
)
def test_damage_does_not_show_secrets(value: bytes) -> None:
    with pytest.raises(StoreError, match="the metadata is damaged at /config/users/alice: ") as error:
        decode_config("/config/users/alice", value)
    assert "hunter2" not in str(error.value)


@pytest.mark.parametrize(
    "path",
    [
        "/config/topics/orders",
        "/config/brokers/<default>",
        "/config/users/a%20b/clients/<default>",
        "/config/ips/10.0.0.1",
        "/config/groups/g",
        "/config/client-metrics/m",
    ],
)
def test_a_change_is_notified_in_version_2(path: str) -> None:
    value = encode_config_change(path)
    assert json.loads(value) == {"version": 2, "entity_path": path.removeprefix("/config/")}
    assert decode_config_change(CHANGE, value) == path


@pytest.mark.parametrize(
    ("value", "path"),
    [
        (b'{"version":1,"entity_type":"topics","entity_name":"t"}', "/config/topics/t"),
        (b'{"version":1,"entity_type":"clients","entity_name":"c"}', "/config/clients/c"),
        (b'"t"', "/config/topics/t"),
        (b'{"version":3,"entity_path":"topics/t","by":"x"}', "/config/topics/t"),
    ],
)
def test_other_versions_are_read(value: bytes, path: str) -> None:
    assert decode_config_change(CHANGE, value) == path


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (b"orders", "it is no JSON"),
        (b"5", "it is no JSON object"),
        (b'{"entity_path":"topics/t"}', 'it has no "version"'),
        (b'{"version":2}', 'it has no "entity_path"'),
        (b'{"version":1,"entity_type":"topics"}', 'it has no "entity_name"'),
        (b'{"version":2,"entity_path":"topics"}', "it names 'topics', which is no entity with configs"),
        (b'{"version":2,"entity_path":"topics/a/b"}', "it names 'topics/a/b', which"),
        (b'{"version":2,"entity_path":"changes/x"}', "it names 'changes/x', which"),
        (b'{"version":2,"entity_path":"../controller"}', "it names '../controller', which"),
        (b'"a/b"', "it names 'topics/a/b', which"),
    ],
)
def test_a_damaged_notification(value: bytes, problem: str) -> None:
    with pytest.raises(StoreError) as error:
        decode_config_change(CHANGE, value)
    assert str(error.value).startswith(f"the metadata is damaged at {CHANGE}: {problem}")
