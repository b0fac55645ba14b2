"""Scripts about configurations: of topics, groups and client metrics, and common rules of all resources."""

from __future__ import annotations

from compat_tests.same_answers.resource import (
    APPEND,
    BROKER,
    CLIENT_METRICS,
    DELETE,
    GIVEN_AT_START,
    GROUP,
    LOGGER,
    SET,
    SUBTRACT,
    TOPIC,
    Configs,
)
from compat_tests.same_answers.transcript import Transcript
from kafkacompat.config import PROPERTIES
from kafkacompat.wire.apis import incremental_alter_configs as incremental
from kafkacompat.wire.apis.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from kafkacompat.wire.apis.list_config_resources import ListConfigResourcesRequest, ListConfigResourcesResponse

# Configs that our broker describes differently on purpose.
OTHERWISE = {"queued.max.request.bytes", "min.insync.replicas"}
COMPARED = sorted(
    name
    for name, row in PROPERTIES.items()
    if name not in GIVEN_AT_START | OTHERWISE and not row.internal and not name.startswith("kafkacompat.")
)


def describe_configs(script: Transcript, name: str) -> None:
    script.create_topic(name, retention_ms="60000")

    def ask(label: str, kind: int, resource: str, keys: list[str] | None, **more: bool) -> None:
        asked = DescribeConfigsResource(resource_type=kind, resource_name=resource, configuration_keys=keys)
        script.ask_every_version(label, DescribeConfigsRequest(resources=[asked], **more), DescribeConfigsResponse)

    ask("all of a topic", TOPIC, name, None, include_synonyms=True, include_documentation=True)
    ask("some of a topic", TOPIC, name, ["retention.ms", "segment.bytes", "frobnicate"])
    ask("none of a topic", TOPIC, name, [])
    ask("one twice", TOPIC, name, ["retention.ms", "retention.ms"])
    ask("unknown topic", TOPIC, name + "-absent", None)
    ask("bad topic", TOPIC, "no/slashes", None)
    ask("every key of a broker", BROKER, "1", COMPARED, include_synonyms=True, include_documentation=True)
    ask("every key of a broker alone", BROKER, "1", COMPARED)
    ask("some of a broker", BROKER, "1", ["num.partitions", "message.max.bytes", "log.retention.hours"])
    ask("with synonyms", BROKER, "1", ["log.retention.ms", "num.io.threads"], include_synonyms=True)
    ask("cluster default", BROKER, "", ["log.retention.ms"])
    for label, kind in {"broker": BROKER, "logger": LOGGER}.items():
        for bad in ("77", "one", "+1", "01", "-1"):
            ask(f"{label} {bad}", kind, bad, ["num.partitions"])
    ask("every key of a group", GROUP, name, None, include_synonyms=True, include_documentation=True)
    ask("every key of client metrics", CLIENT_METRICS, name, None, include_synonyms=True, include_documentation=True)
    for kind in (LOGGER, CLIENT_METRICS, GROUP, TOPIC):
        ask(f"type {kind} without a name", kind, "", None)


def describe_unknown_types(script: Transcript, name: str) -> None:
    for kind in (0, 1, 3, 64, -1):
        asked = DescribeConfigsResource(resource_type=kind, resource_name="1")
        script.ask(f"type {kind}", DescribeConfigsRequest(resources=[asked]), DescribeConfigsResponse, 4)


def alter_configs(script: Transcript, name: str) -> None:
    script.create_topic(name)
    topic = Configs(script, TOPIC, name)
    change = topic.change_in_every_version
    change("set", ("retention.ms", SET, "5000"))
    change("append", ("cleanup.policy", APPEND, "compact"))
    change("append again", ("cleanup.policy", APPEND, "compact"))
    change("subtract", ("cleanup.policy", SUBTRACT, "delete"))
    change("append to a number", ("retention.ms", APPEND, "1"))
    change("delete", ("retention.ms", DELETE, None))
    change("delete again", ("retention.ms", DELETE, None))
    change("delete with a value", ("retention.ms", DELETE, "3"))
    change("delete unknown", ("frobnicate", DELETE, None))
    change("bad value", ("retention.ms", SET, "soon"))
    change("out of bounds", ("segment.bytes", SET, "1"))
    change("no value", ("retention.ms", SET, None))
    change("append nothing", ("cleanup.policy", APPEND, None))
    change("unknown name", ("frobnicate", SET, "1"))
    change("append to unknown", ("frobnicate", APPEND, "1"))
    change("unknown operation", ("retention.ms", 9, "1"))
    change("twice", ("retention.ms", SET, "1"), ("retention.ms", SET, "2"))
    change("good beside bad", ("retention.ms", SET, "1"), ("segment.bytes", SET, "x"))
    change("nothing")
    topic.change("long", ("leader.replication.throttled.replicas", SET, ",".join(f"{n}:1" for n in range(4000))))
    more = ",".join(f"{n}:1" for n in range(4000, 5500))
    topic.change("too long", ("leader.replication.throttled.replicas", APPEND, more))
    change("tiered", ("remote.storage.enable", SET, "true"))
    change("lags", ("min.compaction.lag.ms", SET, "10"), ("max.compaction.lag.ms", SET, "5"))
    topic.change("checked only", ("retention.ms", SET, "7000"), check=True)
    topic.change("checked only and bad", ("retention.ms", SET, "x"), check=True)
    topic.describe("afterwards", "retention.ms", "cleanup.policy")
    for label, other in {"unknown": name + "-absent", "none": "", "bad": "a b"}.items():
        Configs(script, TOPIC, other).change(f"topic {label}", ("retention.ms", SET, "1"))
    for kind in (0, 1, 3, 64):
        Configs(script, kind, "1").change(f"type {kind}", ("retention.ms", SET, "1"))
    config = incremental.AlterableConfig(name="retention.ms", config_operation=SET, value="9")
    resources = [
        incremental.AlterConfigsResource(resource_type=TOPIC, resource_name=topic_name, configs=[config])
        for topic_name in (name, name, name + "-absent")
    ]
    request = incremental.IncrementalAlterConfigsRequest(resources=resources)
    script.ask("resource twice", request, incremental.IncrementalAlterConfigsResponse, 1)


def alter_lists(script: Transcript, name: str) -> None:
    script.create_topic(name)
    topic = Configs(script, TOPIC, name)
    for number, (how, value) in enumerate(
        (
            (SUBTRACT, "delete"),
            (APPEND, "delete,compact,delete"),
            (SUBTRACT, "compact,absent"),
            (APPEND, ""),
            (APPEND, " compact"),
            (SUBTRACT, ""),
            (APPEND, "frobnicate"),
            (SUBTRACT, "delete,delete"),
        )
    ):
        topic.change(f"change {number}", ("cleanup.policy", how, value))
        topic.describe(f"after {number}", "cleanup.policy")


def alter_configs_at_once(script: Transcript, name: str) -> None:
    """The older API, which replaces everything that was set."""
    script.create_topic(name, retention_bytes="100000")
    topic, node, everywhere = Configs(script, TOPIC, name), Configs(script, BROKER, "1"), Configs(script, BROKER, "")
    topic.replace("topic", ("retention.ms", "5000"), ("cleanup.policy", "compact"))
    topic.describe("topic then", "retention.ms", "retention.bytes", "cleanup.policy")
    topic.replace("checked only", ("retention.ms", "6000"), check=True)
    topic.replace("bad value", ("retention.ms", "soon"))
    topic.replace("unknown name", ("frobnicate", "1"))
    topic.replace("null", ("retention.ms", None))
    topic.replace("twice", ("retention.ms", "1"), ("retention.ms", "2"))
    topic.describe("topic unchanged", "retention.ms", "retention.bytes", "cleanup.policy")
    topic.replace("nothing")
    topic.describe("topic emptied", "retention.ms", "retention.bytes", "cleanup.policy")
    Configs(script, TOPIC, name + "-absent").replace("absent topic", ("retention.ms", "1"))
    Configs(script, TOPIC, "").replace("no topic", ("retention.ms", "1"))
    node.change("before", ("log.retention.ms", SET, "7000"))
    node.replace("node", ("message.max.bytes", "2000000"))
    node.describe("node then", "message.max.bytes", "log.retention.ms")
    node.replace("node static", ("num.partitions", "3"))
    node.replace("node bad", ("message.max.bytes", "x"))
    node.replace("node emptied")
    node.describe("node emptied then", "message.max.bytes", "log.retention.ms")
    Configs(script, BROKER, "2").replace("other node", ("message.max.bytes", "2000000"))
    everywhere.change("keep", ("min.insync.replicas", SET, "1"))
    everywhere.replace("all per broker", ("ssl.keystore.type", "x"))
    Configs(script, LOGGER, "1").replace("logger", ("root", "INFO"))
    Configs(script, GROUP, name).replace("group", ("consumer.session.timeout.ms", "50000"))
    Configs(script, GROUP, name).replace("group emptied")
    Configs(script, CLIENT_METRICS, name).replace("metrics", ("interval.ms", "1000"))
    Configs(script, CLIENT_METRICS, name).replace("metrics emptied")
    for kind in (0, 1, 3):
        Configs(script, kind, "1").replace(f"type {kind}", ("retention.ms", "1"))


def alter_group_configs(script: Transcript, name: str) -> None:
    group = Configs(script, GROUP, name)
    for key, value in {
        "consumer.session.timeout.ms": "50000",
        "consumer.heartbeat.interval.ms": "6000",
        "share.isolation.level": "read_committed",
        "share.auto.offset.reset": "by_duration:PT1H",
        "share.record.lock.duration.ms": "1",
        "streams.num.standby.replicas": "1",
        "streams.session.timeout.ms": "1",
        "frobnicate": "1",
    }.items():
        group.change(key, (key, SET, value))
        group.describe(f"{key} then", key)
        group.change(f"{key} deleted", (key, DELETE, None))
    group.change("null", ("consumer.session.timeout.ms", SET, None))
    group.change("append", ("consumer.session.timeout.ms", APPEND, "1"))
    group.change("below heartbeat", ("consumer.heartbeat.interval.ms", SET, "15000"))
    group.change("clean", ("consumer.heartbeat.interval.ms", DELETE, None))
    Configs(script, GROUP, "").change("no name", ("consumer.session.timeout.ms", SET, "50000"))


def alter_client_metrics(script: Transcript, name: str) -> None:
    subscription = Configs(script, CLIENT_METRICS, name)
    for number, (key, value) in enumerate(
        (
            ("interval.ms", "1000"),
            ("interval.ms", "99"),
            ("interval.ms", "3600001"),
            ("interval.ms", "x"),
            ("metrics", "org.apache.kafka.producer.,org.apache.kafka.consumer."),
            ("metrics", "*"),
            ("metrics", "a,a"),
            ("metrics", ""),
            ("match", "client_id=.*"),
            ("match", "client_id=a,client_software_name=b"),
            ("match", "nonsense=a"),
            ("match", "client_id"),
            ("match", "client_id=(("),
            ("match", "client_id = x=y"),
            ("frobnicate", "1"),
        )
    ):
        subscription.change(f"{number} {key}", (key, SET, value))
        subscription.describe(f"{number} {key} then")
        subscription.change(f"{number} {key} deleted", (key, DELETE, None))
    subscription.change("append", ("metrics", APPEND, "a"), ("match", APPEND, "client_id=a"))
    subscription.change("subtract", ("metrics", SUBTRACT, "a"))
    subscription.describe("then")
    subscription.change("clean", ("metrics", DELETE, None), ("match", DELETE, None))
    Configs(script, CLIENT_METRICS, "").change("no name", ("interval.ms", SET, "1000"))


def list_config_resources(script: Transcript, name: str) -> None:
    script.create_topic(name)
    Configs(script, GROUP, name).change("group", ("consumer.session.timeout.ms", SET, "50000"))
    Configs(script, CLIENT_METRICS, f"{name}-metrics").change("metrics", ("interval.ms", SET, "1000"))

    def ask(label: str, *kinds: int, version: int = 1) -> None:
        request = ListConfigResourcesRequest(resource_types=list(kinds))
        script.ask(label, request, ListConfigResourcesResponse, version)

    ask("in version 0", version=0)
    for kind in (BROKER, LOGGER, CLIENT_METRICS, GROUP):
        ask(f"type {kind}", kind)
    ask("several", GROUP, CLIENT_METRICS, GROUP)
    for kind in (0, 1, 3, -1, 64):
        ask(f"unknown type {kind}", GROUP, kind)
    Configs(script, GROUP, name).change("group emptied", ("consumer.session.timeout.ms", DELETE, None))
    Configs(script, CLIENT_METRICS, f"{name}-metrics").change("metrics emptied", ("interval.ms", DELETE, None))
    ask("emptied", GROUP, CLIENT_METRICS)


def describe_configs_at_first(script: Transcript, name: str) -> None:
    """Version 0, which Kafka served until 3.9."""
    script.create_topic(name, retention_ms="60000")
    topic, node = Configs(script, TOPIC, name), Configs(script, BROKER, "1")
    topic.describe("topic", "retention.ms", "segment.bytes", "cleanup.policy", version=0)
    node.describe("node", "num.partitions", "log.retention.ms", "num.io.threads", "ssl.key.password", version=0)


SCRIPTS = (
    describe_configs,
    describe_unknown_types,
    alter_configs,
    alter_lists,
    alter_configs_at_once,
    alter_group_configs,
    alter_client_metrics,
    list_config_resources,
)
OLD_SCRIPTS = (describe_configs_at_first,)
