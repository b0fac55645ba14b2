"""`redrive`: dead letters return to where they came from, unchanged or repaired, each once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from compat_tests.confluent import admin_of
from compat_tests.spark.copies import Run, count_offsets, kill_count, kill_some_times
from compat_tests.spark.scene import Scene
from compat_tests.spark.validation import Validation, headers_of, key_of, produce_values, split_headers
from compat_tests.waiting import until
from spark_integration.errors import PipelineError
from spark_integration.redrive.ledger import RedriveLedger
from spark_integration.redrive.pipeline import RedriveSummary, redrive
from spark_integration.validate.settings import SchemaOptions

pytestmark = pytest.mark.spark

VALUES = [b'{"id": 1}', b"broken", b'{"id": "two"}', b'{"id": "three"}', b"[]"]


class Redrive:
    """Five records, four of them dead, and a ledger."""

    def __init__(self, scene: Scene) -> None:
        self.run = Validation(scene)
        self.schemas = SchemaOptions(schema=self.run.file("a.ddl", "id bigint"))
        self.ledger = str(scene.folder / "ledger")
        produce_values(scene.broker, scene.topic, 1, VALUES)
        self.run.run(self.schemas, path=self.run.path)
        assert self.run.letters().keys() == {(1, number) for number in range(1, 5)}

    def __call__(self, *arguments: Any, **more: Any) -> RedriveSummary:
        options = {"kafka.bootstrap.servers": self.run.scene.broker.bootstrap}
        return redrive(self.run.scene.session, options, self.run.bad, self.ledger, *arguments, **more)

    def back(self, topic: str = "") -> list[tuple[int, Any, bytes]]:
        """Return the records that were written after the first ones: partition, key, value."""
        rows = self.run.records(topic or self.run.scene.topic)
        return [(row.partition, row.key, row.value) for row in rows][0 if topic else len(VALUES) :]


def test_repaired_letters_are_validated_again(scene: Scene) -> None:
    """Letters keep the partition and the order of the origin; headers name the letter, and show how often it was redriven."""
    redriven = Redrive(scene)
    repair = "replace(cast(value as string), '\"two\"', '2')"
    assert redriven("detail like '%.id is%'", repair) == RedriveSummary(2, 2, 0, 0)
    assert redriven.back() == [(1, key_of(2), b'{"id": 2}'), (1, key_of(3), b'{"id": "three"}')]
    own, added = split_headers(redriven.run.records(scene.topic)[5].headers)
    assert own == headers_of(2)
    assert (added["origin-offset"], added["redriven-topic"], added["redriven-offset"]) == ("2", redriven.run.bad, "1")
    assert not any(name.startswith("dead-letter") for name in added)

    redriven.run.run(redriven.schemas, path=redriven.run.path)
    assert redriven.run.table() == {(1, 0): {"id": 1}, (1, 5): {"id": 2}}
    # The letter that was not repaired has died again: it is a new dead letter, which was redriven once.
    again = redriven("redriven = 1 and reason = 'does-not-fit' and offset = 6")
    assert again == RedriveSummary(1, 4, 0, 0)
    headers = [header.key for header in redriven.run.records(scene.topic)[7].headers]
    assert headers.count("kafkacompat-redriven-topic") == 2


def test_none_is_redriven_twice(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither by another --where, nor after a run that ended after its records and before its ledger."""
    redriven = Redrive(scene)
    with monkeypatch.context() as patched:
        patched.setattr(RedriveLedger, "finish", raise_error)
        with pytest.raises(OSError, match="power"):
            redriven("offset <= 2")
    assert len(redriven.back()) == 2
    assert redriven("offset <= 3") == RedriveSummary(1, 1, 2, 0)
    assert redriven() == RedriveSummary(1, 0, 3, 0)
    assert redriven() == RedriveSummary(0, 0, 4, 0)
    assert redriven.back() == [(1, key_of(number), VALUES[number]) for number in range(1, 5)]


def raise_error(*_: Any) -> None:
    raise OSError("the power is gone")


def test_dead_letters_of_another_topic_need_another_ledger(scene: Scene) -> None:
    """A recreated topic has other letters at the same offsets."""
    redriven = Redrive(scene)
    redriven("offset <= 2")
    admin, bad = admin_of(scene.broker), redriven.run.bad
    admin.delete_topics([bad])[bad].result(30)
    until(lambda: bad not in admin.list_topics(timeout=30).topics)
    scene.create(1, bad)
    with pytest.raises(PipelineError, match=f"is of another topic {bad} than the one on .*: give another --ledger$"):
        redriven()
    assert len(redriven.back()) == 2


def test_into_another_topic(scene: Scene) -> None:
    """A record that is no dead letter stays where it is."""
    redriven = Redrive(scene)
    produce_values(scene.broker, redriven.run.bad, 0, [b"by hand"])
    assert redriven(to=redriven.run.good) == RedriveSummary(4, 0, 0, 1)
    assert redriven.back(redriven.run.good) == [(0, key_of(number), VALUES[number]) for number in range(1, 5)]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nothing = 1"], "--where 'nothing = 1' is no SQL over key, value"),
        (["1 +"], "--where '1 \\+' is no SQL"),
        (["true", "upper(nothing)"], "--repair 'upper\\(nothing\\)' is no SQL"),
        (["true", None, "not-there"], "there is no topic not-there"),
    ],
)
def test_redrive_refuses_bad_arguments(scene: Scene, arguments: list[Any], message: str) -> None:
    redriven = Redrive(scene)
    with pytest.raises(PipelineError, match=message):
        redriven(*arguments)
    assert redriven.back() == []
    assert not Path(redriven.ledger).exists()


def test_killed_at_any_moment_each_comes_back_once(scene: Scene) -> None:
    run, count = Validation(scene, 3), 21_000 * kill_count()
    for partition in range(3):
        produce_values(scene.broker, scene.topic, partition, [b"broken %d" % number for number in range(count // 3)])
    run.run(SchemaOptions(schema=run.file("a.ddl", "id bigint")), path=run.path)
    assert count_offsets(scene.broker, run.bad) == count
    arguments = ["redrive", "--bootstrap-server", scene.broker.bootstrap, "--dead-letter-topic", run.bad]
    arguments += ["--ledger", str(scene.folder / "ledger"), "--to", run.good]
    kill_some_times(scene.folder, arguments, lambda: count_offsets(scene.broker, run.good), count)
    last = Run(scene.folder / "last", *arguments)
    assert last.wait() == 0, last.stderr
    places = run.good_places()
    duplicates = len(places) - len(set(places))
    print(f"{duplicates} duplicates of {count}")
    assert set(places) == {(partition, number) for partition in range(3) for number in range(count // 3)}
    assert duplicates == 0
