"""The tables of properties say what they should, and the rest of the code agrees with them."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import kafkacompat
from kafkacompat.config import PROPERTIES, TOPIC_CONFIGS
from kafkacompat.config.broker import AUTHORIZER_PROPERTIES, ZOOKEEPER_PROPERTIES
from kafkacompat.config.resources import CLIENT_METRICS_CONFIGS, GROUP_CONFIGS, find_group_synonym
from kafkacompat.config.topic_defaults import TOPIC_CONFIG_SYNONYMS
from kafkacompat.config.values import format_value
from kafkacompat.storage.log_config import LogConfig

EVERY = [*PROPERTIES.values(), *TOPIC_CONFIGS.values(), *GROUP_CONFIGS.values(), *CLIENT_METRICS_CONFIGS.values()]
PACKAGE = Path(kafkacompat.__file__).parent
LOG_FIELDS = {field.name for field in fields(LogConfig)}


def test_the_tables_have_as_many_properties_as_kafka() -> None:
    own = {name for name in PROPERTIES if name.startswith("kafkacompat.")} | AUTHORIZER_PROPERTIES
    dynamic_only = 3  # the replication rates, which Kafka keeps beside its KafkaConfig
    of_zookeeper = len(ZOOKEEPER_PROPERTIES)  # which Kafka's last releases do not have any more
    assert len(PROPERTIES) - len(own) - dynamic_only - of_zookeeper == 360
    assert len([row for row in TOPIC_CONFIGS.values() if not row.internal]) == 33
    assert (len(GROUP_CONFIGS), len(CLIENT_METRICS_CONFIGS)) == (17, 3)


def test_every_default_is_allowed_and_written_as_kafka_writes_it() -> None:
    for row in EVERY:
        if row.default is not None:
            assert format_value(row.parse(row.default)) == row.default, row


def test_every_row_has_a_short_text_and_known_flags() -> None:
    for row in EVERY:
        assert 10 < len(row.text) < 100 and not row.text.endswith("."), row
        assert set(row.flags) <= set("UCBI"), row


def test_synonyms_name_properties_of_the_same_default() -> None:
    for topic_config, synonyms in TOPIC_CONFIG_SYNONYMS.items():
        assert topic_config in TOPIC_CONFIGS
        values = [PROPERTIES[synonym.name].default_value for synonym in synonyms]
        index = next(i for i, value in enumerate(values) if value is not None)
        factor, default = synonyms[index].factor, values[index]
        expected = default * factor if isinstance(default, int) and factor > 1 else default
        assert expected == TOPIC_CONFIGS[topic_config].default_value, topic_config


def test_synonyms_of_group_configs_have_the_same_default() -> None:
    without = {name for name in GROUP_CONFIGS if find_group_synonym(name) is None}
    assert without == {"share.auto.offset.reset", "share.isolation.level", "share.renew.acknowledge.enable"}
    for name in set(GROUP_CONFIGS) - without:
        synonym = find_group_synonym(name)
        assert synonym and PROPERTIES[synonym].default == GROUP_CONFIGS[name].default


def read_sources() -> dict[str, str]:
    """The code that may read a broker's config, by its path: everything but the tables themselves and what is no broker."""
    folders = (PACKAGE, PACKAGE / "handlers", PACKAGE / "storage")  # rglob does not follow links
    paths = {str(path.relative_to(PACKAGE)): path for folder in folders for path in folder.rglob("*.py")}
    others = (
        "config/tables/",
        "config/development.py",
        "config/topic_defaults.py",
        "storage/log_config.py",
        "history/",
        "testing/",
    )
    return {name: path.read_text() for name, path in paths.items() if not name.startswith(others)}


def find_quoted_names(code: str) -> set[str]:
    """Return the quoted texts that may be names of properties."""
    return set(re.findall(r"\"([a-z0-9.]+)\"", code))


def test_a_topic_config_is_marked_as_used_when_the_code_reads_it() -> None:
    code = "\n".join(text for name, text in read_sources().items() if not name.startswith("config/"))
    words = set(re.findall(r"\w+", code))
    of_logs = {name for name in TOPIC_CONFIGS if name.replace(".", "_") in words & LOG_FIELDS}
    visible = {name: row for name, row in TOPIC_CONFIGS.items() if not row.internal}
    assert {name for name, row in visible.items() if row.used} == of_logs | find_quoted_names(code) & visible.keys()


def test_configs_of_groups_and_client_metrics_are_marked_as_used_when_the_code_reads_them() -> None:
    code = "\n".join(text for name, text in read_sources().items() if name.startswith(("groups/", "telemetry/")))
    configs = {**GROUP_CONFIGS, **CLIENT_METRICS_CONFIGS}
    assert {name for name, row in configs.items() if row.used} == find_quoted_names(code) & configs.keys()


def test_a_property_is_marked_as_used_when_the_code_reads_it() -> None:
    # What is only held against its bounds when it is changed has no effect by that.
    code = "\n".join(text for name, text in read_sources().items() if name != "config/dynamic.py")
    behind_topics = {
        synonym.name
        for topic_config, synonyms in TOPIC_CONFIG_SYNONYMS.items()
        if TOPIC_CONFIGS[topic_config].used
        for synonym in synonyms
    }
    # The transactions topic is made with these, whatever the broker's are.
    of_a_topic = {"min.insync.replicas"}
    marked = {name for name, row in PROPERTIES.items() if row.used}
    assert marked == (find_quoted_names(code) & PROPERTIES.keys()) - of_a_topic | behind_topics
