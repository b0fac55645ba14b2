"""What a broker is configured to do, from a properties file and overrides."""

from __future__ import annotations

import pytest

from kafkacompat.config import BrokerConfig, ConfigError, Listener
from tests.kafkacompat.config.shipped import SHIPPED_WITH_KAFKA


def test_the_file_that_kafka_ships_starts_unchanged() -> None:
    config = BrokerConfig.load(SHIPPED_WITH_KAFKA)
    assert config.node_id == 1
    assert config.listeners == (Listener("PLAINTEXT", "PLAINTEXT", "", 9092),)
    assert config.advertised_listeners == {"PLAINTEXT": ("localhost", 9092)}
    assert config.log_dirs == ("/tmp/kraft-combined-logs",)
    assert config.metadata_log_dir == "/tmp/kraft-combined-logs"
    assert config.unknown_names == ()
    assert config.int("group.initial.rebalance.delay.ms") == 3000


def test_without_a_file_it_is_ready_for_development() -> None:
    config = BrokerConfig.load(None)
    assert config.node_id == 1
    assert config.listeners == (Listener("PLAINTEXT", "PLAINTEXT", "127.0.0.1", 9092),)
    assert config.log_dirs == ("./kafkacompat-data",)
    assert config.bool("auto.create.topics.enable")
    assert config.int("group.initial.rebalance.delay.ms") == 0
    assert config.int("offsets.topic.replication.factor") == 1
    assert config.names_without_effect == ()


def test_overrides_win_over_the_file_and_over_the_development_defaults() -> None:
    assert BrokerConfig.load("node.id=3\nnum.partitions=2", {"num.partitions": "4"}).int("num.partitions") == 4
    assert BrokerConfig.load(None, {"log.dir": "/a"}).log_dirs == ("/a",)
    assert BrokerConfig.load(None, {"log.dirs": "/b,/c"}).log_dirs == ("/b", "/c")
    assert BrokerConfig.load(None, {"broker.id": "7"}).node_id == 7


@pytest.mark.parametrize(
    ("stronger", "name", "value"),
    [
        ({"node.id": "5"}, "broker.id", 5),
        ({"broker.id": "5"}, "node.id", 5),
        ({"log.retention.hours": "5"}, "log.retention.ms", None),
        ({"log.roll.hours": "5"}, "log.roll.ms", None),
        ({"log.retention.hours": "5", "log.retention.minutes": "6"}, "log.retention.hours", 5),
    ],
)
def test_a_stronger_layer_wins_by_another_name_or_unit_too(
    stronger: dict[str, str], name: str, value: int | None
) -> None:
    file = "node.id=1\nbroker.id=1\nlog.retention.ms=7\nlog.roll.ms=7"
    assert BrokerConfig.load(file, stronger).value(name) == value
    weaker = {"node.id": "1", "broker.id": "1", "log.retention.ms": "7", "log.roll.ms": "7"}
    assert BrokerConfig.load("", weaker, stronger).value(name) == value


def test_with_a_file_kafkas_defaults_hold() -> None:
    config = BrokerConfig.load("node.id=0")
    assert config.log_dirs == ("/tmp/kafka-logs",)
    assert config.int("offsets.topic.replication.factor") == 3


def test_the_old_name_of_the_node_id() -> None:
    config = BrokerConfig.load("broker.id=5")
    assert (config.node_id, config.int("broker.id")) == (5, 5)


def test_metadata_log_dir_names_a_directory_of_its_own() -> None:
    assert BrokerConfig.load("node.id=1\nmetadata.log.dir=/meta\nlog.dirs=/data").metadata_log_dir == "/meta"


def test_own_defaults() -> None:
    config = BrokerConfig.load("node.id=1")
    assert config.int("queued.max.request.bytes") == 256 * 2**20
    assert config.string("kafkacompat.produce.validation") == "records"
    assert config.int("kafkacompat.decompressed.max.bytes") == 104_857_600


def test_larger_frames_raise_the_default_bound_of_all_frames() -> None:
    config = BrokerConfig.load("node.id=1\nsocket.request.max.bytes=300000000")
    assert config.int("queued.max.request.bytes") == 300_000_000
    assert BrokerConfig.load("node.id=1\nqueued.max.request.bytes=-1").int("queued.max.request.bytes") == -1


def test_unknown_and_idle_properties_are_distinguished() -> None:
    config = BrokerConfig.load("node.id=1\nnum.io.threads=4\nlog.message.format.version=3.0\nmy.plugin=x")
    assert config.unknown_names == ("log.message.format.version", "my.plugin")
    assert config.names_without_effect == ("num.io.threads",)


def test_properties_of_the_listeners_of_instances_are_known() -> None:
    names = ("listener.name.instances-sasl_ssl.ssl.client.auth", "listener.name.instance-shop-0.ssl.client.auth")
    config = BrokerConfig(
        {"node.id": "1", **dict.fromkeys(names, "none"), "listener.name.other.ssl.client.auth": "none"}
    )
    assert config.unknown_names == ("listener.name.other.ssl.client.auth",)


LISTENER = "node.id=1\nlisteners=INTERNAL://:9092\nlistener.security.protocol.map=INTERNAL:PLAINTEXT\n"


def test_a_listeners_property_is_known_if_the_listener_exists() -> None:
    names = ["internal.max.connections", "internal.num.network.threads", "internal.plugin", "INTERNAL.max.connections"]
    config = BrokerConfig.load(
        LISTENER + "".join(f"listener.name.{name}=5\n" for name in [*names, "other.max.connections"])
    )
    assert config.names_without_effect == ("listener.name.internal.num.network.threads",)
    assert config.unknown_names == (
        "listener.name.INTERNAL.max.connections",
        "listener.name.internal.plugin",
        "listener.name.other.max.connections",
    )
    assert config.listener_value("INTERNAL", "max.connections") == 5
    assert config.listener_value("OTHER", "max.connection.creation.rate") == 2**31 - 1


def test_a_listeners_property_is_checked_at_the_start() -> None:
    with pytest.raises(ConfigError) as refusal:
        BrokerConfig.load(LISTENER + "listener.name.internal.max.connections=many")
    words = "it takes a whole number of 0 or more"
    assert str(refusal.value) == f"listener.name.internal.max.connections=many is not valid: {words}"


def test_typed_getters() -> None:
    config = BrokerConfig.load("node.id=1\nbroker.rack=a")
    assert config.float("log.cleaner.min.cleanable.ratio") == 0.5
    assert config.list("log.cleanup.policy") == ["delete"]
    assert config.optional_string("broker.rack") == "a"
    assert config.optional_string("inter.broker.listener.name") is None
    assert config.text("log.cleanup.policy") == "delete"
    with pytest.raises(TypeError):
        config.int("log.retention.ms")
    with pytest.raises(KeyError):
        config.int("no.such.property")


def test_changes_replace_the_same_thing_in_other_units() -> None:
    config = BrokerConfig.load("node.id=1\nlog.retention.ms=5000\nlog.roll.hours=2")
    changed = config.with_changes({"log.retention.hours": "1"}, {"log.roll.ms": "7"})
    assert changed.value("log.retention.ms") is None
    assert changed.int("log.retention.hours") == 1
    assert changed.int("log.roll.ms") == 7
    assert config.int("log.retention.ms") == 5000


def test_a_change_for_this_broker_wins_over_one_for_the_cluster() -> None:
    changed = BrokerConfig.load("node.id=1").with_changes({"message.max.bytes": "1"}, {"message.max.bytes": "2"})
    assert changed.int("message.max.bytes") == 2


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "node.id is not set: give the node a number of 0 or more"),
        ("node.id=-1", "node.id=-1 is not valid: it takes a whole number of 0 or more"),
        ("broker.id=-1", "broker.id=-1 is not valid: it takes a whole number of 0 or more"),
        ("node.id=1\nbroker.id=2", "broker.id=2 is not node.id=1: set one of them only"),
        ("node.id=one", "node.id=one is not valid: it takes a whole number of 0 or more"),
        ("node.id=1\nnum.partitions=0", "num.partitions=0 is not valid: it takes a whole number of 1 or more"),
        (
            "node.id=1\ncompression.type=lzma",
            "compression.type=lzma is not valid: it takes one of uncompressed, zstd, lz4, snappy, gzip, producer",
        ),
        ("node.id=1\ninter.broker.protocol.version=2.3", "inter.broker.protocol.version=2.3 is no release from 2.8 on"),
        ("node.id=1\ncontrol.plane.listener.name=C", "control.plane.listener.name=C is not served"),
        ("node.id=1\nprocess.roles=controller", "process.roles=controller is not served yet"),
        ("node.id=1\nprocess.roles=king", "it takes a list of one or more of broker, controller"),
        ("node.id=1\ncontroller.quorum.voters=1@a:1,2@b:1", "names the nodes 1, 2: only a single node is served"),
        ("node.id=1\ncontroller.quorum.bootstrap.servers=a:1,b:1", "names 2 controllers"),
        (
            "node.id=1\ngroup.consumer.assignors=range,x.Y",
            "group.consumer.assignors=x.Y is not served: it takes some of",
        ),
        ("node.id=1\nauthorizer.class.name=x.Y", "authorizer.class.name=x.Y is not served: it takes org.apache"),
        ("node.id=1\nkafkacompat.audit.log=/a", "kafkacompat.audit.log=/a has no effect without an authorizer"),
        ("node.id=1\nsuper.users=User:a;b", "super.users=User:a;b is not valid: it takes the form User:alice;User:bob"),
        (
            "node.id=1\nlog.dirs=/a,/b\ncordoned.log.dirs=/b,/c",
            "cordoned.log.dirs=/c is not valid: it takes some of /a, /b",
        ),
        ("node.id=1\nlog.dirs=/a\ncordoned.log.dirs=*,/a", "or * alone"),
        ("node.id=1\nqueued.max.request.bytes=1000", "it takes 104857600 (socket.request.max.bytes) or more, or -1"),
        ("node.id=1\nlog.roll.ms=0", "log.roll.ms=0 is not valid"),
        ("node.id=1\nlog.roll.jitter.ms=-1", "log.roll.jitter.ms=-1 is not valid"),
        ("node.id=1\nlog.retention.minutes=0", "log.retention.ms=0 is not valid"),
        ("node.id=1\nlog.dirs=", "log.dirs= is not valid: it takes a list of one or more"),
        ("node.id=1\na=\\u12", "the properties file cannot be read"),
        (
            "node.id=1\nkafkacompat.produce.validation=none",
            "kafkacompat.produce.validation=none is not valid: it takes one of header, records",
        ),
    ],
)
def test_refuses_in_one_sentence(text: str, sentence: str) -> None:
    with pytest.raises(ConfigError) as refusal:
        BrokerConfig.load(text)
    assert sentence in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_an_empty_zookeeper_connect_is_no_zookeeper() -> None:
    assert BrokerConfig.load("node.id=1\nzookeeper.connect=").node_id == 1


@pytest.mark.parametrize(
    ("text", "cordoned"), [("", ()), ("/b", ("/b",)), ("/b,/a", ("/b", "/a")), ("*", ("/a", "/b"))]
)
def test_cordoned_directories(text: str, cordoned: tuple[str, ...]) -> None:
    assert BrokerConfig.load(f"node.id=1\nlog.dirs=/a,/b\ncordoned.log.dirs={text}").cordoned_log_dirs == cordoned


def test_a_broker_without_a_file_is_node_1_alone_and_has_no_id_in_a_cluster() -> None:
    assert BrokerConfig.load(None).node_id == 1
    assert BrokerConfig.load(None, {"zookeeper.connect": "zk:2181"}).needs_broker_id
    assert not BrokerConfig.load(None, {"zookeeper.connect": "zk:2181", "broker.id": "4"}).needs_broker_id
