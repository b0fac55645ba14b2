"""The clients of the matrix: how each is had, and which of the programme's features it knows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial

from compat_tests.matrix import install
from compat_tests.matrix.driver import Launch

OLD_CODECS = "gzip snappy"
CODECS = "gzip snappy lz4"
ALL_CODECS = "gzip snappy lz4 zstd"
GROUPS = "group resume"
CONTENTS = "headers timestamps"
PRODUCERS = "idempotent transactions"
EVERYTHING = (ALL_CODECS, CONTENTS, GROUPS, PRODUCERS)


@dataclass(frozen=True)
class Row:
    """One client in one version; ``features`` are the steps beyond those that every client knows.

    ``limits`` tell why the client fails a step on every broker: step -> the client's own fault, for the report.
    """

    name: str
    title: str
    features: frozenset[str]
    install: Callable[[], Launch]
    limits: Mapping[str, str] = field(default_factory=dict)


# Row -> its limits.
LIMITS = {
    "aiokafka-0.5.2": {"headers": "the client drops the headers of a record that has to wait for a full batch"},
    "kafka-python-2.0.2-as-0.11": {"headers": "the client asks by Fetch v3, in whose format there are no headers"},
    "sarama-1.23.1": {"zstd": "the client sends zstd as Produce v3; brokers take it from v7 on (KIP-110)"},
}


def _make_row(name: str, title: str, features: tuple[str, ...], how: Callable[[], Launch]) -> Row:
    return Row(name, title, frozenset(" ".join(features).split()), how, LIMITS.get(name, {}))


# Release -> era of the driver, and the features that came with it, of Apache Kafka's own client.
JAVA_0_9 = ("v0_9", (CODECS, GROUPS))
JAVA_0_10 = ("v0_10", (CODECS, GROUPS, "timestamps"))
JAVA_0_11 = ("v0_11", (CODECS, CONTENTS, GROUPS, PRODUCERS))
JAVA_2_1 = ("v0_11", EVERYTHING)
JAVA = {
    **dict.fromkeys(("0.9.0.1",), JAVA_0_9),
    **dict.fromkeys(("0.10.0.1", "0.10.1.1", "0.10.2.2"), JAVA_0_10),
    **dict.fromkeys(("0.11.0.3", "1.0.2", "1.1.1", "2.0.1"), JAVA_0_11),
    **dict.fromkeys(("2.1.1", "2.2.2", "2.3.1", "2.4.1", "2.5.1", "2.6.3", "2.7.2", "2.8.2"), JAVA_2_1),
    **dict.fromkeys(("3.0.2", "3.1.2", "3.2.3", "3.3.2", "3.4.1", "3.5.2", "3.6.2", "3.7.2", "3.8.1"), JAVA_2_1),
    **dict.fromkeys(("3.9.1", "4.0.2", "4.1.2", "4.2.1", "4.3.1"), JAVA_2_1),
}


def java_rows() -> Iterator[Row]:
    """Apache Kafka's own client, a release of each minor line that changed the protocol."""
    oldest = partial(install.java, "0.8.2.2", "v0_8", "kafka_2.11")
    yield _make_row("java-0.8.2.2", "Java 0.8.2.2, producer and SimpleConsumer", (CODECS, "resume"), oldest)
    for version, (era, features) in JAVA.items():
        yield _make_row(f"java-{version}", f"Java {version}", features, partial(install.java, version, era))


# Release -> Python it runs on, options of the driver, features.
CODEC_PACKAGES = ("python-snappy", "lz4", "zstandard")
# Before 1.3 kafka-python took another package for lz4.
BEFORE_LZ4 = ("python-snappy", "lz4tools")
KAFKA_PYTHON = {
    "1.0.2": ("3.6", ("create=auto", "timestamps=no", "headers=no", "in_flight=5"), (CODECS, GROUPS)),
    "1.1.1": ("3.6", ("create=auto", "timestamps=no", "headers=no"), (CODECS, GROUPS)),
    # It takes a timestamp for a record and sends the time of day.
    "1.2.5": ("3.6", ("create=auto", "timestamps=no", "headers=no"), (CODECS, GROUPS)),
    "1.3.5": ("3.6", ("create=auto", "headers=no"), (CODECS, GROUPS, "timestamps")),
    "1.4.7": ("3.6", (), (CODECS, CONTENTS, GROUPS)),
    "2.0.2": ("3.11", (), (ALL_CODECS, CONTENTS, GROUPS)),
    "2.3.3": ("3.11", (), EVERYTHING),
    "3.0.12": ("3.11", (), EVERYTHING),
}
BEFORE_0_10 = ("create=auto", "timestamps=no", "headers=no")
BEFORE_0_11 = ("create=auto", "headers=no")
DIALECTS = {
    "0.8.2": (BEFORE_0_10, (CODECS, "resume")),
    "0.9": (BEFORE_0_10, (CODECS, GROUPS)),
    "0.10": (BEFORE_0_11, (CODECS, "timestamps", GROUPS)),
    "0.11": ((), (CODECS, CONTENTS, GROUPS)),
    "1.0": ((), (CODECS, CONTENTS, GROUPS)),
    "2.0": ((), (CODECS, CONTENTS, GROUPS)),
}


def kafka_python_rows() -> Iterator[Row]:
    """kafka-python from the first release that installs, and two late ones in the dialects of older brokers."""
    # Its consumer never requests committed offsets, and begins at the beginning.
    first = partial(install.python, "with_kafka_python_0_9_0", ("kafka-python==0.9.0", "python-snappy<0.7"), "2.7")
    yield _make_row("kafka-python-0.9.0", "kafka-python 0.9.0 (Python 2.7)", (OLD_CODECS,), first)
    oldest = partial(install.python, "with_kafka_python_0_9", ("kafka-python==0.9.5", "python-snappy", "six"), "3.6")
    yield _make_row("kafka-python-0.9.5", "kafka-python 0.9.5 (Python 3.6)", (OLD_CODECS, "resume"), oldest)
    for version, (python, options, features) in KAFKA_PYTHON.items():
        how = partial(install.python, "with_kafka_python", _kafka_python(version), python, options)
        yield _make_row(f"kafka-python-{version}", f"kafka-python {version} (Python {python})", features, how)
    for version in ("2.0.2", "3.0.12"):
        for dialect, (options, features) in DIALECTS.items():
            if version == "3.0.12" and CONTENTS in features:
                features = (*features, PRODUCERS)
            words = (f"api={dialect}", *options)
            how = partial(install.python, "with_kafka_python", _kafka_python(version), "3.11", words)
            title = f"kafka-python {version}, api_version {dialect}"
            yield _make_row(f"kafka-python-{version}-as-{dialect}", title, features, how)


def _kafka_python(version: str) -> tuple[str, ...]:
    # xxhash: for the header checksum of lz4 in the oldest format.
    return (f"kafka-python=={version}", *(BEFORE_LZ4 if version < "1.3" else CODEC_PACKAGES), "xxhash")


# From the first release that is there as a wheel and has an admin client.
CONFLUENT = {
    "0.11.6": ("3.6", (), (CODECS, CONTENTS, GROUPS)),
    "1.0.1": ("3.6", (), (ALL_CODECS, CONTENTS, GROUPS, "idempotent")),
    "1.4.2": ("3.8", (), EVERYTHING),
    "1.9.2": ("3.8", (), EVERYTHING),
    "2.0.2": ("3.11", (), EVERYTHING),
    "2.11.1": ("3.11", (), EVERYTHING),
    "2.16.1": ("3.11", (), EVERYTHING),
}


def confluent_rows() -> Iterator[Row]:
    """confluent-kafka; the librdkafka in it has the same number."""
    for version, (python, options, features) in CONFLUENT.items():
        how = partial(install.python, "with_confluent_kafka", (f"confluent-kafka=={version}",), python, options)
        yield _make_row(f"confluent-kafka-{version}", f"confluent-kafka {version} (Python {python})", features, how)


# Release -> the node-rdkafka that carries it, options, features.
LIBRDKAFKA = {
    "0.9.1": ("0.3.3", (), (OLD_CODECS, GROUPS)),
    "0.9.5": ("1.0.4", ("api.version.request=true",), (CODECS, GROUPS, "timestamps")),
    "0.11.1": ("2.2.0", (), (CODECS, GROUPS, "timestamps")),
}


def librdkafka_rows() -> Iterator[Row]:
    """Releases of librdkafka that are older than the wheels of confluent-kafka."""
    for version, (carrier, options, features) in LIBRDKAFKA.items():
        how = partial(install.librdkafka, carrier, options)
        yield _make_row(f"librdkafka-{version}", f"librdkafka {version} (C)", features, how)


# Release -> Python it runs on, the kafka-python that it was written for (the later ones bring what they need), options
# of the driver, features.
AIOKAFKA = {
    "0.5.2": ("3.8", ("kafka-python==1.4.6",), ("create=auto", "loop=given"), (CODECS, CONTENTS, GROUPS, PRODUCERS)),
    "0.7.2": ("3.8", ("kafka-python==2.0.2",), ("create=auto",), (CODECS, CONTENTS, GROUPS, PRODUCERS)),
    "0.10.0": ("3.11", (), (), EVERYTHING),
    "0.14.0": ("3.11", (), (), EVERYTHING),
}


def aiokafka_rows() -> Iterator[Row]:
    """aiokafka, from the oldest release that installs."""
    for version, (python, companions, options, features) in AIOKAFKA.items():
        packages = (f"aiokafka=={version}", *companions, *CODEC_PACKAGES)
        how = partial(install.python, "with_aiokafka", packages, python, options)
        yield _make_row(f"aiokafka-{version}", f"aiokafka {version} (Python {python})", features, how)


def kcat_rows() -> Iterator[Row]:
    """kcat of Debian."""
    yield _make_row("kcat", "kcat (Debian)", (ALL_CODECS, "headers", GROUPS, "idempotent"), install.kcat)


IBM_SARAMA, SHOPIFY_SARAMA = "github.com/IBM/sarama", "github.com/Shopify/sarama"
# Name, module, release, configured protocol version, folders, features.
SARAMA = (
    ("1.23.1", SHOPIFY_SARAMA, "v1.23.1", "2.1.0", "sarama_old", (ALL_CODECS, CONTENTS, GROUPS, "idempotent")),
    ("1.38.1", SHOPIFY_SARAMA, "v1.38.1", "2.1.0", "sarama_new", EVERYTHING),
    ("1.61.1", IBM_SARAMA, "v1.61.1", "4.0.0", "sarama_new", EVERYTHING),
    ("1.61.1-as-0.10.2", IBM_SARAMA, "v1.61.1", "0.10.2.0", "sarama_new", (CODECS, "timestamps", GROUPS)),
)


def go_rows() -> Iterator[Row]:
    """Sarama, kafka-go and franz-go."""
    for name, module, version, speaks, folder, features in SARAMA:
        how = partial(install.go, ("sarama", folder), module, version, {"SARAMA_VERSION": speaks})
        yield _make_row(f"sarama-{name}", f"{module[11:]} {version[1:]}, Version {speaks}", features, how)
    for version in ("v0.4.42", "v0.4.51"):
        how = partial(install.go, ("kafkago",), "github.com/segmentio/kafka-go", version)
        yield _make_row(
            f"kafka-go-{version[1:]}", f"segmentio/kafka-go {version[1:]}", (ALL_CODECS, CONTENTS, GROUPS), how
        )
    for version in ("v1.7.0", "v1.22.2"):
        how = partial(install.go, ("franz",), "github.com/twmb/franz-go", version)
        yield _make_row(f"franz-go-{version[1:]}", f"franz-go {version[1:]}", EVERYTHING, how)


KAFKAJS_CODECS = {"kafkajs-snappy": "1.1.0", "lz4-napi": "^2.8.0", "zstd-codec": "^0.1.5"}


def node_rows() -> Iterator[Row]:
    """kafkajs, with the packages that add codecs to it."""
    for version in ("1.16.0", "2.2.4"):
        how = partial(install.node, "with_kafkajs", {"kafkajs": version, **KAFKAJS_CODECS})
        yield _make_row(f"kafkajs-{version}", f"kafkajs {version}", EVERYTHING, how)


RSKAFKA = {
    "rskafka": '"=0.6.0"',
    "chrono": '{ version = "0.4", default-features = false }',
    "tokio": '{ version = "1", features = ["rt-multi-thread", "time", "macros"] }',
    "serde_json": '"1"',
}


def _require_rdkafka(version: str) -> dict[str, str]:
    return {"rdkafka": install.require_rdkafka(version), "serde_json": '"1"'}


def rust_rows() -> Iterator[Row]:
    """rskafka, which knows no groups, and the rdkafka crate over a librdkafka that it brings and compiles."""
    how = partial(install.rust, "with_rskafka", RSKAFKA)
    yield _make_row("rskafka-0.6.0", "rskafka 0.6.0", (ALL_CODECS, CONTENTS), how)
    for version, librdkafka, features in (("0.39.0", "2.12.1", EVERYTHING),):
        how = partial(install.rust, "with_rdkafka", _require_rdkafka(version))
        yield _make_row(f"rdkafka-{version}", f"rdkafka crate {version} (librdkafka {librdkafka})", features, how)


FAMILIES = (
    java_rows,
    kafka_python_rows,
    librdkafka_rows,
    confluent_rows,
    aiokafka_rows,
    kcat_rows,
    go_rows,
    node_rows,
    rust_rows,
)
ROWS: dict[str, Row] = {row.name: row for family in FAMILIES for row in family()}
