"""Spark in one instance beside another with the same topic names, on one node."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from compat_tests.conftest import MakeBroker
from compat_tests.instances import running_instances
from compat_tests.spark.scene import Record, Scene, collect_records, make_values, produce_values

pytestmark = pytest.mark.spark

INSTANCES = ("shop", "bank")
COUNT = 200


@pytest.fixture
def scenes(broker_kind: str, make_broker: MakeBroker, scene: Scene) -> Iterator[dict[str, Scene]]:
    """The same scene in each instance: its topic has the same name there."""
    if broker_kind != "kafkacompat":
        pytest.skip("instances are this broker's own")
    with running_instances(make_broker(), {name: {} for name in INSTANCES}) as seen:
        yield {name: scene.on(broker) for name, broker in seen.items()}


def test_source_and_sink_see_their_own_instance(scenes: dict[str, Scene]) -> None:
    """A batch that is written and read, a pattern of topics, and a stream into a topic that both instances have."""
    produced: dict[str, set[Record]] = {}
    for number, (name, scene) in enumerate(scenes.items()):
        scene.create(2)
        scene.create(2, f"{scene.topic}-copy")
        produced[name] = produce_values(scene.broker, scene.topic, make_values(COUNT, 2, COUNT * number))
    for name, scene in scenes.items():
        rows = scene.session.range(COUNT).selectExpr(f"concat('{name} ', id) as value", "0 as partition")
        rows.write.format("kafka").options(
            **{"kafka.bootstrap.servers": scene.broker.bootstrap, "topic": scene.topic}
        ).save()
    for name, scene in scenes.items():
        records = collect_records(scene.batch(subscribePattern=f"{scene.topic}.*"))
        assert produced[name] < records
        assert {value for _, _, value in records - produced[name]} == {f"{name} {number}" for number in range(COUNT)}
        copy_stream(scene, name)
    for scene in scenes.values():
        values = {value for _, _, value in collect_records(scene.batch())}
        copied = {value for _, _, value in collect_records(scene.batch(subscribe=f"{scene.topic}-copy"))}
        assert copied == values
        assert len(copied) == 3 * COUNT


def copy_stream(scene: Scene, name: str) -> None:
    """Copy the scene's topic to another one by a stream, to its end."""
    writer = scene.stream().selectExpr("value").writeStream.format("kafka")
    query = (
        writer.option("kafka.bootstrap.servers", scene.broker.bootstrap)
        .option("topic", f"{scene.topic}-copy")
        .option("checkpointLocation", str(scene.folder / name))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(120)
    assert query.exception() is None
