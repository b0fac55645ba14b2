"""Configs set, deleted, appended to and subtracted from."""

from __future__ import annotations

import pytest

from kafkacompat.config import BrokerConfig
from kafkacompat.config.resources import ResourceType
from kafkacompat.metadata.config_changes import ConfigOperation, ConfigOperationType, ResourceChange, alter_configs
from kafkacompat.metadata.draft import MetadataDraft
from kafkacompat.metadata.effective import EffectiveConfig
from kafkacompat.metadata.image import MetadataImage, TopicImage
from kafkacompat.wire.errors import ErrorCode, KafkaError

CONFIG = BrokerConfig.load("node.id=1")
TOPIC = (ResourceType.TOPIC, "t")


def make_draft(**configs: str) -> MetadataDraft:
    on = MetadataDraft(MetadataImage())
    on.put_topic(TopicImage("t", b"i" * 16, ()))
    on.put_config(TOPIC, {name.replace("_", "."): value for name, value in configs.items()})
    return on


def change_config(
    on: MetadataDraft, name: str, operation: ConfigOperationType, value: str | None = None
) -> dict[str, str]:
    alter_configs(on, CONFIG, ResourceChange(*TOPIC, [ConfigOperation(name, operation, value)]))
    return dict(on.configs.get(TOPIC, {}))


def test_set_and_delete() -> None:
    on = make_draft()
    assert change_config(on, "retention.ms", ConfigOperationType.SET, "5") == {"retention.ms": "5"}
    assert change_config(on, "segment.ms", ConfigOperationType.SET, "6") == {"retention.ms": "5", "segment.ms": "6"}
    assert change_config(on, "retention.ms", ConfigOperationType.DELETE) == {"segment.ms": "6"}
    assert change_config(on, "never.was.there", ConfigOperationType.DELETE) == {"segment.ms": "6"}
    assert change_config(on, "segment.ms", ConfigOperationType.DELETE) == {}
    assert TOPIC not in on.configs


def test_append_and_subtract_start_from_the_default() -> None:
    on = make_draft()
    assert change_config(on, "cleanup.policy", ConfigOperationType.APPEND, "compact") == {
        "cleanup.policy": "delete,compact"
    }
    assert change_config(on, "cleanup.policy", ConfigOperationType.APPEND, "compact") == {
        "cleanup.policy": "delete,compact"
    }
    assert change_config(on, "cleanup.policy", ConfigOperationType.SUBTRACT, "delete,nothing") == {
        "cleanup.policy": "compact"
    }
    assert change_config(make_draft(), "cleanup.policy", ConfigOperationType.SUBTRACT, "delete") == {
        "cleanup.policy": ""
    }


@pytest.mark.parametrize(
    ("resource", "name", "operation", "code"),
    [
        (
            ResourceType.TOPIC,
            "",
            ConfigOperation("retention.ms", ConfigOperationType.SET, "1"),
            ErrorCode.INVALID_REQUEST,
        ),
        (
            ResourceType.TOPIC,
            "t",
            ConfigOperation("retention.ms", ConfigOperationType.SET, "x"),
            ErrorCode.INVALID_CONFIG,
        ),
        (ResourceType.TOPIC, "t", ConfigOperation("no.such", ConfigOperationType.SET, "x"), ErrorCode.INVALID_CONFIG),
        (
            ResourceType.TOPIC,
            "t",
            ConfigOperation("retention.ms", ConfigOperationType.APPEND, "1"),
            ErrorCode.INVALID_CONFIG,
        ),
        (
            ResourceType.TOPIC,
            "t",
            ConfigOperation("no.such", ConfigOperationType.SUBTRACT, "1"),
            ErrorCode.INVALID_CONFIG,
        ),
        (
            ResourceType.TOPIC,
            "t",
            ConfigOperation("retention.ms", ConfigOperationType.SET, None),
            ErrorCode.INVALID_REQUEST,
        ),
        (
            ResourceType.TOPIC,
            "t",
            ConfigOperation("leader.replication.throttled.replicas", ConfigOperationType.SET, "0:1," * 10_000),
            ErrorCode.INVALID_CONFIG,
        ),
        (
            ResourceType.TOPIC,
            "other",
            ConfigOperation("retention.ms", ConfigOperationType.SET, "1"),
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ),
        (
            ResourceType.BROKER,
            "two",
            ConfigOperation("log.retention.ms", ConfigOperationType.SET, "1"),
            ErrorCode.INVALID_REQUEST,
        ),
        (
            ResourceType.BROKER,
            "x",
            ConfigOperation("log.retention.ms", ConfigOperationType.SET, "1"),
            ErrorCode.INVALID_REQUEST,
        ),
        (
            ResourceType.BROKER,
            "1",
            ConfigOperation("log.retention.ms", ConfigOperationType.SET, "x"),
            ErrorCode.INVALID_REQUEST,
        ),
        (
            ResourceType.BROKER,
            "1",
            ConfigOperation("log.retention.ms", ConfigOperationType.SET, "0"),
            ErrorCode.INVALID_REQUEST,
        ),
        (
            ResourceType.BROKER,
            "1",
            ConfigOperation("log.dirs", ConfigOperationType.SET, "/x"),
            ErrorCode.INVALID_REQUEST,
        ),
        (
            ResourceType.BROKER,
            "1",
            ConfigOperation("listeners", ConfigOperationType.SET, "X://:1"),
            ErrorCode.INVALID_REQUEST,
        ),
        (
            ResourceType.BROKER,
            "",
            ConfigOperation("ssl.keystore.type", ConfigOperationType.SET, "X"),
            ErrorCode.INVALID_REQUEST,
        ),
        (ResourceType.BROKER, "1", ConfigOperation("foo", ConfigOperationType.APPEND, "x"), ErrorCode.INVALID_CONFIG),
        (ResourceType.GROUP, "", ConfigOperation("streams.num.standby.replicas", ConfigOperationType.SET, "1"), None),
        (
            ResourceType.GROUP,
            "g",
            ConfigOperation("consumer.session.timeout.ms", ConfigOperationType.SET, "1"),
            ErrorCode.INVALID_CONFIG,
        ),
        (ResourceType.CLIENT_METRICS, "m", ConfigOperation("interval.ms", ConfigOperationType.SET, "1"), None),
        (ResourceType.CLIENT_METRICS, "", ConfigOperation("interval.ms", ConfigOperationType.SET, "100"), None),
    ],
)
def test_refuses_as_kafka_does(
    resource: ResourceType, name: str, operation: ConfigOperation, code: ErrorCode | None
) -> None:
    on = make_draft()
    with pytest.raises(KafkaError) as problem:
        alter_configs(on, CONFIG, ResourceChange(resource, name, [operation]))
    assert problem.value.code == (code or ErrorCode.INVALID_REQUEST)
    assert on.configs == {}


def test_one_bad_config_leaves_all_of_the_resource_alone() -> None:
    on = make_draft(segment_ms="1")
    operations = [
        ConfigOperation("retention.ms", ConfigOperationType.SET, "5"),
        ConfigOperation("segment.bytes", ConfigOperationType.SET, "5"),
    ]
    with pytest.raises(KafkaError):
        alter_configs(on, CONFIG, ResourceChange(*TOPIC, operations))
    assert on.configs == {TOPIC: {"segment.ms": "1"}}


def test_the_lag_of_a_topic_is_held_against_the_brokers_as_it_was_changed() -> None:
    on = make_draft()
    operations = [ConfigOperation("log.cleaner.max.compaction.lag.ms", ConfigOperationType.SET, "10")]
    alter_configs(on, CONFIG, ResourceChange(ResourceType.BROKER, "", operations))
    with pytest.raises(KafkaError):
        change_config(on, "min.compaction.lag.ms", ConfigOperationType.SET, "11")


def test_brokers_take_changes_of_every_level_and_plugins_names() -> None:
    on = make_draft()
    for name in ("", "1"):
        operations = [
            ConfigOperation("log.retention.ms", ConfigOperationType.SET, "5"),
            ConfigOperation("my.plugin", ConfigOperationType.SET, "x"),
        ]
        alter_configs(on, CONFIG, ResourceChange(ResourceType.BROKER, name, operations))
    assert on.configs[ResourceType.BROKER, ""] == on.configs[ResourceType.BROKER, "1"]


def test_lists_of_any_length_are_changed_in_little_time() -> None:
    many = ",".join(map(str, range(100_000)))
    assert change_config(make_draft(), "cleanup.policy", ConfigOperationType.SUBTRACT, f"{many},delete") == {
        "cleanup.policy": ""
    }
    with pytest.raises(KafkaError, match="more than 32767"):
        change_config(make_draft(), "cleanup.policy", ConfigOperationType.APPEND, many)


def test_of_elements_that_stand_there_twice_as_many_go_as_were_named() -> None:
    key = "leader.replication.throttled.replicas"
    given = {key.replace(".", "_"): "1:1,2:1,1:1,3:1,1:1"}
    assert change_config(make_draft(**given), key, ConfigOperationType.SUBTRACT, "1:1,9:9,1:1") == {key: "2:1,3:1,1:1"}
    assert change_config(make_draft(**given), key, ConfigOperationType.APPEND, "4:1,1:1,4:1") == {
        key: "1:1,2:1,1:1,3:1,1:1,4:1"
    }


def test_the_configuration_in_effect() -> None:
    effective = EffectiveConfig(CONFIG)
    assert effective.log_config_of("t").retention_ms == 604_800_000
    effective.update(
        {
            (ResourceType.BROKER, ""): {"log.retention.ms": "5"},
            (ResourceType.BROKER, "1"): {"log.roll.ms": "6"},
            (ResourceType.TOPIC, "configured"): {"retention.ms": "7"},
        }
    )
    assert (effective.log_config_of("t").retention_ms, effective.log_config_of("t").segment_ms) == (5, 6)
    assert effective.log_config_of("configured").retention_ms == 7
    assert effective.log_config_of("t") is effective.log_config_of("u")


def test_changes_that_do_not_fit_the_properties_file_any_more_are_left_out() -> None:
    effective = EffectiveConfig(CONFIG)
    effective.update({(ResourceType.BROKER, "1"): {"queued.max.request.bytes": "1"}})
    assert effective.config is CONFIG


def test_a_change_that_does_not_fit_any_more_costs_no_other() -> None:
    """A directory that was cordoned, drained and taken out of log.dirs must not bring back an old retention."""
    effective = EffectiveConfig(CONFIG)
    effective.update(
        {
            (ResourceType.BROKER, ""): {"log.retention.ms": "-1"},
            (ResourceType.BROKER, "1"): {
                "cordoned.log.dirs": "/taken/out",
                "listeners": "PLAINTEXT://:9092,EXTRA://:9093",
                "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,EXTRA:PLAINTEXT",
                "log.retention.bytes": "-1",
            },
        }
    )
    assert effective.log_config_of("t").retention_ms == -1
    assert effective.config.cordoned_log_dirs == ()
    assert "log.retention.bytes" in effective.config.given
    # These two fit only together.
    assert [listener.name for listener in effective.config.listeners] == ["PLAINTEXT", "EXTRA"]


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("listeners", "EXTRA://127.0.0.1:0", "PLAINTEXT of server.properties"),
        ("kafkacompat.listener.name.plaintext.emulate", "2.8", "is bound already"),
    ],
)
def test_a_running_broker_keeps_its_listeners(name: str, value: str, words: str) -> None:
    config = BrokerConfig.load("node.id=1\nlistener.security.protocol.map=PLAINTEXT:PLAINTEXT,EXTRA:PLAINTEXT")
    wanted = ResourceChange(ResourceType.BROKER, "1", [ConfigOperation(name, ConfigOperationType.SET, value)])
    with pytest.raises(KafkaError, match=words) as caught:
        alter_configs(make_draft(), config, wanted)
    assert caught.value.code == ErrorCode.INVALID_REQUEST
