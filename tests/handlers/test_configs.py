"""DescribeConfigs and IncrementalAlterConfigs, entry by entry as Apache Kafka 4.3.1 shows them."""

from __future__ import annotations

import pytest

from kafkacompat.wire.apis.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from kafkacompat.wire.apis.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from kafkacompat.wire.errors import ErrorCode
from tests.handlers.admin_node import AdminNode

TOPIC, BROKER, LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = range(4)
Synonyms = list[tuple[str, str | None, int]]


def describe(
    node: AdminNode, kind: int, name: str, keys: list[str] | None = None, *, version: int = 4, full: bool = True
) -> DescribeConfigsResult:
    resource = DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=keys)
    request = DescribeConfigsRequest(resources=[resource], include_synonyms=full, include_documentation=full)
    (result,) = node.ask(request, DescribeConfigsResponse, version).results
    assert (result.resource_type, result.resource_name) == (kind, name)
    return result


def describe_entry(node: AdminNode, kind: int, name: str, key: str) -> DescribeConfigsResourceResult:
    (only,) = describe(node, kind, name, [key]).configs
    return only


def list_synonyms(of: DescribeConfigsResourceResult) -> Synonyms:
    return [(synonym.name, synonym.value, synonym.source) for synonym in of.synonyms]


def alter(node: AdminNode, kind: int, name: str, *changes: tuple[int, str, str | None], validate: bool = False) -> int:
    configs = [AlterableConfig(name=key, config_operation=how, value=value) for how, key, value in changes]
    resource = AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)
    request = IncrementalAlterConfigsRequest(resources=[resource], validate_only=validate)
    (response,) = node.ask(request, IncrementalAlterConfigsResponse, 1).responses
    assert (response.resource_type, response.resource_name) == (kind, name)
    assert bool(response.error_message) == bool(response.error_code)
    return response.error_code


def test_a_topic_has_33_configs() -> None:
    node = AdminNode()
    node.make_topic("t")
    result = describe(node, TOPIC, "t")
    names = [config.name for config in result.configs]
    assert (result.error_code, len(names)) == (0, 33)
    assert names == sorted(names) and "internal.segment.bytes" not in names
    assert all(config.documentation and not config.read_only and not config.is_sensitive for config in result.configs)


@pytest.mark.parametrize(
    ("key", "value", "config_type", "inherited"),
    [
        ("cleanup.policy", "delete", 7, [("log.cleanup.policy", "delete", 5)]),
        ("min.cleanable.dirty.ratio", "0.5", 6, [("log.cleaner.min.cleanable.ratio", "0.5", 5)]),
        ("preallocate", "false", 1, [("log.preallocate", "false", 5)]),
        ("compression.type", "producer", 2, [("compression.type", "producer", 5)]),
        ("max.message.bytes", "1048588", 3, [("message.max.bytes", "1048588", 5)]),
        ("flush.messages", "9223372036854775807", 5, [("log.flush.interval.messages", "9223372036854775807", 5)]),
        ("flush.ms", "9223372036854775807", 5, []),
        ("retention.ms", "604800000", 5, []),
        ("follower.replication.throttled.replicas", "", 7, []),
        ("remote.storage.enable", "false", 1, []),
    ],
)
def test_topic_defaults_as_kafka_shows_them(key: str, value: str, config_type: int, inherited: Synonyms) -> None:
    node = AdminNode()
    node.make_topic("t")
    shown = describe_entry(node, TOPIC, "t", key)
    assert (shown.value, shown.config_source, shown.config_type) == (value, 5, config_type)
    assert list_synonyms(shown) == inherited


def test_where_a_topics_value_comes_from() -> None:
    node = AdminNode(log_retention_hours="100")
    node.make_topic("t")
    hours: Synonyms = [("log.retention.hours", "100", 4), ("log.retention.hours", "168", 5)]
    # Kafka does not count a value that is set in hours only.
    shown = describe_entry(node, TOPIC, "t", "retention.ms")
    assert (shown.value, shown.config_source, list_synonyms(shown)) == ("360000000", 5, [])
    assert alter(node, BROKER, "", (SET, "log.retention.ms", "888")) == 0
    assert alter(node, BROKER, "1", (SET, "log.retention.ms", "777")) == 0
    brokers: Synonyms = [("log.retention.ms", "777", 2), ("log.retention.ms", "888", 3), *hours]
    shown = describe_entry(node, TOPIC, "t", "retention.ms")
    assert (shown.value, shown.config_source, list_synonyms(shown)) == ("777", 2, brokers)
    assert alter(node, TOPIC, "t", (SET, "retention.ms", "5")) == 0
    shown = describe_entry(node, TOPIC, "t", "retention.ms")
    assert (shown.value, shown.config_source, list_synonyms(shown)) == ("5", 1, [("retention.ms", "5", 1), *brokers])


def test_describe_returns_only_requested_configs() -> None:
    node = AdminNode()
    node.make_topic("t")
    result = describe(node, TOPIC, "t", ["retention.ms", "no.such"], full=False)
    (only,) = result.configs
    assert (only.name, only.synonyms, only.documentation) == ("retention.ms", [], None)
    assert len(describe(node, TOPIC, "t", []).configs) == 33
    (old,) = describe(node, TOPIC, "t", ["retention.ms"], version=1).configs
    assert old.config_type == 0


def test_version_0_only_marks_defaults() -> None:
    node = AdminNode()
    node.make_topic("t")
    assert alter(node, TOPIC, "t", (SET, "retention.ms", "5")) == 0
    shown = describe(node, TOPIC, "t", ["retention.ms", "retention.bytes"], version=0, full=False).configs
    assert {config.name: config.is_default for config in shown} == {"retention.ms": False, "retention.bytes": True}
    assert describe(node, BROKER, "01", ["node.id"], version=0, full=False).configs[0].value == "1"


def test_a_listeners_property_stands_before_the_brokers() -> None:
    node = AdminNode()
    key = "listener.name.internal.ssl.keystore.type"
    secret = "listener.name.internal.ssl.keystore.password"
    assert alter(node, BROKER, "1", (SET, key, "PEM"), (SET, secret, "hunter2")) == 0
    shown = describe_entry(node, BROKER, "1", key)
    assert (shown.value, shown.config_type, shown.read_only) == ("PEM", 2, True)
    assert list_synonyms(shown) == [(key, "PEM", 2), ("ssl.keystore.type", "JKS", 5)]
    hidden = describe_entry(node, BROKER, "1", secret)
    assert (hidden.value, hidden.is_sensitive, list_synonyms(hidden)) == (None, True, [(secret, None, 2)])
    assert "hunter2" not in repr(describe(node, BROKER, "1"))


def test_a_rate_of_throttled_replication_is_there_once_it_is_set() -> None:
    node = AdminNode()
    key = "leader.replication.throttled.rate"
    assert describe(node, BROKER, "1", [key]).configs == []
    assert alter(node, BROKER, "1", (SET, key, "1000")) == 0
    assert list_synonyms(describe_entry(node, BROKER, "1", key)) == [(key, "1000", 2)]


def test_a_brokers_own_properties() -> None:
    node = AdminNode(my_plugin="x", ssl_key_password="hunter2", num_partitions="3")
    shown = {config.name: config for config in describe(node, BROKER, "1").configs}
    assert shown["num.partitions"].value == "3" and shown["num.partitions"].read_only
    assert list_synonyms(shown["num.partitions"]) == [("num.partitions", "3", 4), ("num.partitions", "1", 5)]
    assert list_synonyms(shown["broker.id"]) == [("broker.id", "1", 4), ("broker.id", "-1", 5)]
    assert not shown["log.retention.ms"].read_only and shown["log.retention.ms"].value is None
    password = shown["ssl.key.password"]
    assert (password.value, password.is_sensitive, password.config_type) == (None, True, 9)
    assert list_synonyms(password) == [("ssl.key.password", None, 4)]
    unknown = shown["my.plugin"]
    assert (unknown.value, unknown.is_sensitive, unknown.config_type, unknown.config_source) == (None, True, 0, 4)
    assert "log.initial.task.delay.ms" not in shown


def test_a_secret_is_nowhere_in_the_answer() -> None:
    node = AdminNode(ssl_key_password="hunter2", my_plugin="hunter2")
    assert "hunter2" not in repr(describe(node, BROKER, "1"))


def test_describe_shows_configs_of_all_brokers() -> None:
    node = AdminNode()
    assert describe(node, BROKER, "").configs == []
    assert alter(node, BROKER, "", (SET, "log.retention.ms", "888")) == 0
    assert alter(node, BROKER, "1", (SET, "log.retention.ms", "777")) == 0
    (shown,) = describe(node, BROKER, "").configs
    assert (shown.value, shown.config_source, list_synonyms(shown)) == ("888", 3, [("log.retention.ms", "888", 3)])


def test_a_changed_unit_hides_the_file_s() -> None:
    node = AdminNode(log_retention_hours="100")
    assert alter(node, BROKER, "1", (SET, "log.retention.ms", "777")) == 0
    shown = describe_entry(node, BROKER, "1", "log.retention.hours")
    assert (shown.value, list_synonyms(shown)) == (
        "168",
        [("log.retention.hours", "100", 4), ("log.retention.hours", "168", 5)],
    )


def test_groups() -> None:
    node = AdminNode()
    assert alter(node, GROUP, "g", (SET, "consumer.session.timeout.ms", "50000")) == 0
    assert len(describe(node, GROUP, "g").configs) == 17
    shown = describe_entry(node, GROUP, "g", "consumer.session.timeout.ms")
    inherited: Synonyms = [("group.consumer.session.timeout.ms", "45000", 5)]
    assert (shown.value, shown.config_source) == ("50000", 8)
    assert list_synonyms(shown) == [("consumer.session.timeout.ms", "50000", 8), *inherited]
    other = describe_entry(node, GROUP, "other", "consumer.session.timeout.ms")
    assert (other.value, other.config_source, list_synonyms(other)) == ("45000", 5, inherited)
    assert list_synonyms(describe_entry(node, GROUP, "g", "share.isolation.level")) == [
        ("share.isolation.level", "read_uncommitted", 5)
    ]


def test_client_metrics() -> None:
    node = AdminNode()
    assert alter(node, CLIENT_METRICS, "m", (SET, "interval.ms", "100")) == 0
    shown = {config.name: config for config in describe(node, CLIENT_METRICS, "m").configs}
    assert sorted(shown) == ["interval.ms", "match", "metrics"]
    assert (shown["interval.ms"].value, list_synonyms(shown["interval.ms"])) == ("100", [("interval.ms", "100", 7)])
    assert (shown["match"].value, shown["match"].config_source, list_synonyms(shown["match"])) == ("", 5, [])
    assert describe(node, CLIENT_METRICS, "other").configs[0].value == "300000"


@pytest.mark.parametrize(
    ("kind", "name", "code"),
    [
        (TOPIC, "nope", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (TOPIC, "a b", ErrorCode.INVALID_TOPIC_EXCEPTION),
        (BROKER, "2", ErrorCode.INVALID_REQUEST),
        (BROKER, "x", ErrorCode.INVALID_REQUEST),
        (GROUP, "", ErrorCode.INVALID_REQUEST),
        (CLIENT_METRICS, "", ErrorCode.INVALID_REQUEST),
        (LOGGER, "", ErrorCode.INVALID_REQUEST),
        (LOGGER, "2", ErrorCode.INVALID_REQUEST),
        (3, "x", ErrorCode.INVALID_REQUEST),
    ],
)
def test_describe_refuses_unknown_resources(kind: int, name: str, code: ErrorCode) -> None:
    result = describe(AdminNode(), kind, name)
    assert (result.error_code, result.configs) == (code, [])
    assert result.error_message


def test_changes_of_a_topic() -> None:
    node = AdminNode()
    node.make_topic("t")
    assert alter(node, TOPIC, "t", (SET, "retention.ms", "5"), (APPEND, "cleanup.policy", "compact")) == 0
    assert describe_entry(node, TOPIC, "t", "cleanup.policy").value == "delete,compact"
    assert alter(node, TOPIC, "t", (DELETE, "retention.ms", None)) == 0
    assert describe_entry(node, TOPIC, "t", "retention.ms").config_source == 5
    assert alter(node, TOPIC, "t", (SET, "retention.ms", "9"), validate=True) == 0
    assert describe_entry(node, TOPIC, "t", "retention.ms").config_source == 5
    assert alter(node, TOPIC, "t") == 0


@pytest.mark.parametrize(
    ("kind", "name", "change", "code"),
    [
        (TOPIC, "nope", (SET, "retention.ms", "5"), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (TOPIC, "t", (SET, "retention.ms", "x"), ErrorCode.INVALID_CONFIG),
        (TOPIC, "t", (SET, "retention.ms", None), ErrorCode.INVALID_REQUEST),
        (TOPIC, "t", (9, "retention.ms", "5"), ErrorCode.INVALID_REQUEST),
        (BROKER, "1", (SET, "log.dirs", "/x"), ErrorCode.INVALID_REQUEST),
        (TOPIC, "a b", (SET, "retention.ms", "5"), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (BROKER, "1", (SET, "num.io.threads", "17"), ErrorCode.INVALID_REQUEST),
        (CLIENT_METRICS, "m", (SET, "interval.ms", "x"), ErrorCode.INVALID_CONFIG),
        (CLIENT_METRICS, "m", (SET, "interval.ms", "1"), ErrorCode.INVALID_REQUEST),
        (CLIENT_METRICS, "m", (APPEND, "metrics", "a"), ErrorCode.INVALID_CONFIG),
        (3, "x", (SET, "a", "b"), ErrorCode.INVALID_REQUEST),
    ],
)
def test_alter_refuses_bad_changes(kind: int, name: str, change: tuple[int, str, str | None], code: ErrorCode) -> None:
    node = AdminNode()
    node.make_topic("t")
    assert alter(node, kind, name, change) == code
    assert node.holder.image.configs == {}


def test_a_config_or_a_resource_that_is_named_twice() -> None:
    node = AdminNode()
    node.make_topic("t")
    assert alter(node, TOPIC, "t", (SET, "retention.ms", "5"), (SET, "retention.ms", "6")) == ErrorCode.INVALID_REQUEST
    configs = [AlterableConfig(name="retention.ms", config_operation=SET, value="5")]
    resources = [
        AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)
        for kind, name in ((TOPIC, "t"), (TOPIC, "t"), (TOPIC, "u"))
    ]
    node.make_topic("u")
    request = IncrementalAlterConfigsRequest(resources=resources)
    response = node.ask(request, IncrementalAlterConfigsResponse, 1)
    twice = ErrorCode.INVALID_REQUEST
    assert [resource.error_code for resource in response.responses] == [twice, twice, 0]


def test_a_failing_store() -> None:
    node = AdminNode()
    node.make_topic("t")
    node.store.failing = True
    assert alter(node, TOPIC, "t", (SET, "retention.ms", "5")) == ErrorCode.KAFKA_STORAGE_ERROR


def test_a_resource_named_many_times_is_described_once_as_it_was_last_asked_for() -> None:
    resources = [
        DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=[key])
        for kind, name, key in ((BROKER, "1", "a"), (GROUP, "1", "a"), (BROKER, "1", "num.partitions"))
    ]
    answer = AdminNode().ask(DescribeConfigsRequest(resources=resources), DescribeConfigsResponse, 4)
    assert [(result.resource_type, [entry.name for entry in result.configs]) for result in answer.results] == [
        (BROKER, ["num.partitions"]),
        (GROUP, []),
    ]
