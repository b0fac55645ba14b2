"""Scripts about a node's configs, loggers, directories and features."""

from __future__ import annotations

from compat_tests.raw_client import RawClient
from compat_tests.same_answers.resource import (
    APPEND,
    BROKER,
    DELETE,
    GIVEN_AT_START,
    LOGGER,
    SET,
    SUBTRACT,
    Configs,
)
from compat_tests.same_answers.transcript import Transcript
from compat_tests.waiting import until
from kafkacompat.wire.apis.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from kafkacompat.wire.apis.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from kafkacompat.wire.apis.update_features import FeatureUpdateKey, UpdateFeaturesRequest, UpdateFeaturesResponse


def alter_broker_configs(script: Transcript, name: str) -> None:
    node, everywhere = Configs(script, BROKER, "1"), Configs(script, BROKER, "")
    keys = ["log.retention.ms", "log.retention.hours", "message.max.bytes", "log.cleanup.policy"]
    node.change_in_every_version("set", ("log.retention.ms", SET, "777000"))
    everywhere.change_in_every_version("set for all", ("log.retention.ms", SET, "888000"))
    everywhere.change("hours for all", ("message.max.bytes", SET, "2000000"))
    node.change("append", ("log.cleanup.policy", APPEND, "compact"))
    node.change("subtract", ("log.cleanup.policy", SUBTRACT, "delete"))
    node.describe("node", *keys)
    everywhere.describe("all brokers", *keys)
    node.change("delete", ("log.retention.ms", DELETE, None), ("log.cleanup.policy", DELETE, None))
    node.describe("node after", *keys)
    everywhere.change("delete for all", *((key, DELETE, None) for key in keys))
    node.describe("node at last", *keys)
    for label, of in {"node": node, "all": everywhere}.items():
        for key, value in {
            "log.dirs": "/x",
            "num.partitions": "7",
            "log.retention.hours": "5",
            "auto.create.topics.enable": "false",
            "frobnicate": "1",
            "log.retention.ms": "0",
            "log.segment.bytes": "x",
            "log.roll.ms": "0",
            "num.io.threads": "100",
            "log.cleaner.threads": "9",
            "background.threads": "4",
            "ssl.keystore.password": "secret",
            "ssl.keystore.type": "PKCS12",
            "listener.name.plaintext.ssl.keystore.type": "PKCS12",
            "listener.name.plaintext.ssl.keystore.password": "secret",
            "listener.name.plaintext.max.connections": "1000",
            "listener.name.plaintext.num.network.threads": "x",
            "listener.name.plaintext.num.partitions": "3",
            "max.connections": "5000",
            "max.connections.per.ip": "x",
            "max.connections.per.ip.overrides": "127.0.0.1:9000",
            "cordoned.log.dirs": "/nowhere",
            "log.local.retention.ms": "-1",
            "producer.id.expiration.ms": "5000",
            "transaction.partition.verification.enable": "false",
            "group.consumer.assignment.interval.ms": "70000",
            "leader.replication.throttled.rate": "1000",
            "config.providers": "x",
            "process.roles": "broker",
            "listeners": "nonsense",
            "listener.security.protocol.map": "PLAINTEXT:SSL",
        }.items():
            of.change(f"{label}: {key}", (key, SET, value))
            if key not in GIVEN_AT_START:
                of.describe(f"{label}: {key} then", key)
            of.change(f"{label}: {key} deleted", (key, DELETE, None))
        for key in ("", "listener.name.plaintext.", "listener.name.absent."):
            for name in ("max.connections", "max.connection.creation.rate"):
                of.change(f"{label}: {key}{name} of 0", (key + name, SET, "0"))
                of.change(f"{label}: {key}{name} of 0 deleted", (key + name, DELETE, None))
        of.change(f"{label}: append to unknown", ("frobnicate", APPEND, "1"))
        of.change(f"{label}: append to number", ("log.retention.ms", APPEND, "1"))
        of.change(f"{label}: unknown operation", ("log.retention.ms", 7, "1"))
        of.change(f"{label}: twice", ("log.retention.ms", SET, "1000"), ("log.retention.ms", DELETE, None))
        of.change(f"{label}: null", ("log.retention.ms", SET, None))
        of.change(f"{label}: checked", ("log.retention.ms", SET, "1000"), check=True)
        of.describe(f"{label}: checked then", "log.retention.ms")
    for other in ("2", "one", "-1"):
        Configs(script, BROKER, other).change(f"broker {other}", ("log.retention.ms", SET, "1000"))


def alter_loggers(script: Transcript, name: str) -> None:
    loggers = Configs(script, LOGGER, "1")
    for level in ("INFO", "FATAL", "TRACE", "DEBUG", "WARN", "ERROR"):
        loggers.change(f"root {level}", ("root", SET, level))
        loggers.describe(f"root {level} then", "root")
    loggers.change("checked only", ("root", SET, "INFO"), check=True)
    loggers.describe("checked only then", "root")
    for level in ("OFF", "ALL", "info", "Info", "WARNING", "", "LOUD"):
        loggers.change(f"level {level!r}", ("root", SET, level))
    loggers.change("null", ("root", SET, None))
    loggers.change("delete root", ("root", DELETE, None))
    loggers.change("append", ("root", APPEND, "INFO"))
    loggers.change("subtract", ("root", SUBTRACT, "INFO"))
    loggers.change("unknown operation", ("root", 9, "INFO"))
    loggers.change("unknown logger", ("no.such.logger", SET, "INFO"))
    loggers.change("unknown logger deleted", ("no.such.logger", DELETE, None))
    loggers.change("good beside bad", ("root", SET, "INFO"), ("no.such.logger", SET, "INFO"))
    loggers.change("twice", ("root", SET, "INFO"), ("root", SET, "WARN"))
    loggers.change("nothing")
    loggers.describe("unchanged", "root")
    loggers.describe("unknown", "no.such.logger")
    for other in ("", "2", "one"):
        Configs(script, LOGGER, other).change(f"node {other!r}", ("root", SET, "INFO"))
    for version in range(1, 5):
        loggers.describe("in each version", "root", version=version)


def update_features(script: Transcript, name: str) -> None:
    def ask(label: str, *updates: FeatureUpdateKey, check: bool = False) -> None:
        request = UpdateFeaturesRequest(feature_updates=list(updates), validate_only=check)
        script.ask_every_version(label, request, UpdateFeaturesResponse)

    def update(feature: str, level: int, kind: int = 1) -> FeatureUpdateKey:
        return FeatureUpdateKey(feature=feature, max_version_level=level, upgrade_type=kind)

    ask("nothing")
    ask("nothing checked", check=True)
    ask("unknown feature", update("frobnicate", 1))
    ask("unknown feature checked", update("frobnicate", 1), check=True)
    ask("unknown feature off", update("frobnicate", 0, 2))
    ask("below 0", update("frobnicate", -1, 2))
    ask("no name", update("", 1))
    ask("unknown kind", update("frobnicate", 1, 9))
    ask("two", update("frobnicate", 1), update("frobnicated", 1))
    ask("twice", update("frobnicate", 1), update("frobnicate", 2))
    ask("beyond what there is", update("group.version", 77))


def takes_topics(port: int) -> bool:
    """Whether a topic could be made now; Kafka's controller learns of cordoned directories by a heartbeat."""
    topic = CreatableTopic(name="would-be", num_partitions=1, replication_factor=1)
    request = CreateTopicsRequest(topics=[topic], timeout_ms=10_000, validate_only=True)
    with RawClient(port) as client:
        return client.call(request, CreateTopicsResponse, 7).topics[0].error_code == 0


def cordoned_directories(script: Transcript, name: str) -> None:
    script.create_topic(name)
    node = Configs(script, BROKER, "1")
    node.change("a directory that is none", ("cordoned.log.dirs", SET, "/nowhere"))
    node.change("all and one", ("cordoned.log.dirs", SET, "*,/nowhere"))
    Configs(script, BROKER, "").change("for all brokers", ("cordoned.log.dirs", SET, "*"))
    node.change("all", ("cordoned.log.dirs", SET, "*"))
    until(lambda: not takes_topics(script.port))
    node.describe("all then", "cordoned.log.dirs")
    placed = CreatableTopic(name=f"{name}-placed", num_partitions=1, replication_factor=1)
    chosen = CreatableReplicaAssignment(partition_index=0, broker_ids=[1])
    assigned = CreatableTopic(name=f"{name}-assigned", num_partitions=-1, replication_factor=-1, assignments=[chosen])
    more = CreatePartitionsTopic(name=name, count=2, assignments=None)
    for topic in (placed, assigned):
        script.ask(topic.name, CreateTopicsRequest(topics=[topic], timeout_ms=10_000), CreateTopicsResponse, 7)
    script.ask("more", CreatePartitionsRequest(topics=[more], timeout_ms=10_000), CreatePartitionsResponse, 3)
    node.change("none", ("cordoned.log.dirs", DELETE, None))
    until(lambda: takes_topics(script.port))
    script.ask("more then", CreatePartitionsRequest(topics=[more], timeout_ms=10_000), CreatePartitionsResponse, 3)


SCRIPTS = (alter_broker_configs, alter_loggers, update_features, cordoned_directories)
