"""Consumer groups: their names, when Spark's consumers join them, and that nothing is committed."""

from __future__ import annotations

import json
import re

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions

from compat_tests.confluent import admin_of
from compat_tests.spark.scene import Query, Scene, collect_records, make_values
from compat_tests.waiting import until

pytestmark = pytest.mark.spark

# Spark makes up the rest of a group's name.
MADE_UP = re.compile(r"-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}-.*")

NAMES = {"kafka.group.id": ("{}", "{}"), "groupIdPrefix": ("{}", "{}-*"), "": ("", "spark-kafka-source-*")}


def describe_members(scene: Scene) -> dict[str, tuple[str, int]]:
    """Return state and number of members of each group, without the made-up parts of names."""
    admin = admin_of(scene.broker)
    groups = [group.group_id for group in admin.list_consumer_groups().result().valid]
    descriptions = [future.result() for future in admin.describe_consumer_groups(groups).values()] if groups else []
    return {
        MADE_UP.sub("-*", group.group_id): (group.state.name, len(group.members))
        for group in descriptions
        if group.members
    }


def choose_topic(scene: Scene, way: str) -> dict[str, str]:
    return {
        "subscribe": {"subscribe": scene.topic},
        "subscribePattern": {"subscribePattern": scene.topic + ".*"},
        "assign": {"assign": json.dumps({scene.topic: [0, 1]})},
    }[way]


@pytest.mark.parametrize("deprecated", [True, False])
@pytest.mark.parametrize("way", ["subscribe", "subscribePattern", "assign"])
@pytest.mark.parametrize("option", ["kafka.group.id", "groupIdPrefix", ""])
def test_only_the_drivers_deprecated_consumer_joins_a_group(
    scene: Scene, option: str, way: str, deprecated: bool
) -> None:
    """Only the driver's consumer of `useDeprecatedOffsetFetching` joins one, if the group assigns partitions."""
    scene = scene.with_conf(spark__sql__streaming__kafka__useDeprecatedOffsetFetching=str(deprecated).lower())
    scene.create(2)
    given, expected = (name.format(scene.topic) for name in NAMES[option])
    options = {**choose_topic(scene, way), **({option: given} if option else {})}
    produced = scene.fill(make_values(5, 2))
    query = scene.run(scene.stream(**options))
    query.wait_for(produced)
    joins = deprecated and way != "assign"
    assert scene.note("groups", describe_members(scene)) == ({expected: ("STABLE", 1)} if joins else {})
    more = scene.fill(make_values(5, 2, start=5))
    query.wait_for(produced | more)
    assert scene.note("rows", query.records()) == produced | more
    stop_and_leave(scene, query)


def stop_and_leave(scene: Scene, query: Query) -> None:
    """End the query; its consumer leaves the group, and nothing was committed."""
    query.stop()
    until(lambda: not describe_members(scene))


def test_the_group_of_a_batch(scene: Scene) -> None:
    """The driver joins it while it looks up offsets; the executors' consumers assign their partitions themselves."""
    scene = scene.with_conf(spark__sql__streaming__kafka__useDeprecatedOffsetFetching="true")
    scene.create(2)
    produced = scene.fill(make_values(5, 2))
    for option in ("kafka.group.id", "groupIdPrefix"):
        assert scene.note(option, collect_records(scene.batch(**{option: scene.topic}))) == produced
    until(lambda: not describe_members(scene))


@pytest.mark.parametrize("deprecated", [True, False])
def test_nothing_is_committed(scene: Scene, deprecated: bool) -> None:
    scene = scene.with_conf(spark__sql__streaming__kafka__useDeprecatedOffsetFetching=str(deprecated).lower())
    scene.create(2)
    produced = scene.fill(make_values(5, 2))
    query = scene.run_to_the_end(scene.stream(**{"kafka.group.id": scene.topic}))
    assert query.records() == produced
    asked = [ConsumerGroupTopicPartitions(scene.topic)]
    answer = admin_of(scene.broker).list_consumer_group_offsets(asked)[scene.topic].result(30)
    assert scene.note("committed", [(part.partition, part.offset) for part in answer.topic_partitions]) == []
