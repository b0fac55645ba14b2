"""The pipeline `rollup` restarted: after a run that ended anywhere, with other options, or after losses."""

from __future__ import annotations

import importlib
import random
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from compat_tests.brokers import Broker
from compat_tests.confluent import admin_of, create_topic
from compat_tests.spark.rollup_case import Case, with_options
from compat_tests.spark.rollups import (
    MINUTE_MS,
    START_MS,
    format_time,
    make_event,
    random_events,
    read_last_values,
    read_messages,
    read_table,
)
from spark_integration.errors import PipelineError
from spark_integration.rollup import pipeline

pytestmark = pytest.mark.spark


@pytest.fixture
def case(spark: Any, broker: Broker, name: str, tmp_path: Path, more_options: dict[str, Any]) -> Case:
    return Case(spark, broker, name, tmp_path, **more_options)


@pytest.fixture
def more_options(request: pytest.FixtureRequest) -> dict[str, Any]:
    """Options of one test beside those of all (by `with_options`)."""
    return dict(getattr(request, "param", {}))


BROKEN = ["no JSON", '{"time": "never"}']
STEPS = [
    ("tables", "ParquetTable.put"),
    ("batches", "write_to_topic"),
    ("ledger", "RollupLedger.write"),
    ("tables", "ParquetTable.drop"),
    ("batches", "dead_letter_records"),
]


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize(("module", "step"), STEPS, ids=[step for _, step in STEPS])
@with_options(retention="30 minutes", dead_topic="{topic}-dead")
def test_a_run_that_ends_anywhere_is_done_again(
    case: Case, monkeypatch: pytest.MonkeyPatch, module: str, step: str, when: str
) -> None:
    """Whatever step is the last one: topic and table are equal in the end, and nothing is counted twice."""
    first = [*random_events(random.Random(7), 60, 20), make_event(20)]
    case.run(first)
    events = [make_event(14), *random_events(random.Random(8), 20, 50), make_event(70)]
    case.produce(BROKEN)
    failures = fail_at(monkeypatch, module, step, when)
    with pytest.raises(Exception, match="as planned"):
        case.run(events)
    assert failures == [1]
    monkeypatch.undo()
    case.run()
    horizon_ms = START_MS + 35 * MINUTE_MS
    last, buried = read_last_values(case.broker, case.settings.topic)
    assert last == case.model.results(closed=True, from_ms=horizon_ms)
    table = read_table(case.folder / "table")
    assert {key: value for key, value in table.items() if value["window_end"] > format_time(horizon_ms)} == last
    account = case.account()
    assert (account["rows"], account["dead_rows"]) == (len(first) + len(events) + len(BROKEN), len(BROKEN))
    assert account["late_rows"] == case.model.late > 0
    assert {message.value().decode() for message in read_messages(case.broker, f"{case.topic}-dead")} == set(BROKEN)
    assert account["windows_written"] - account["tombstones"] == len(last)
    assert len(buried) == account["tombstones"]


def fail_at(monkeypatch: pytest.MonkeyPatch, module: str, step: str, when: str) -> list[int]:
    """Let a step of the batches fail once, before or after it is done."""
    target = importlib.import_module(f"spark_integration.rollup.{module}")
    owner, _, name = step.rpartition(".")
    holder = getattr(target, owner) if owner else target
    real = getattr(holder, name)
    failures: list[int] = []

    def failing(*arguments: Any) -> Any:
        done = real(*arguments) if when == "after" else None
        if not failures:
            failures.append(1)
            raise RuntimeError("as planned")
        return done if when == "after" else real(*arguments)

    monkeypatch.setattr(holder, name, failing)
    return failures


def test_another_state_store(case: Case) -> None:
    provider = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    case.spark = case.spark.newSession()
    case.spark.conf.set("spark.sql.shuffle.partitions", "2")
    case.spark.conf.set("spark.sql.streaming.stateStore.providerClass", provider)
    case.spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    case.run([*random_events(random.Random(9), 60, 20), make_event(20)])
    case.run([make_event(40)])
    assert case.results() == case.model.results(closed=True)
    assert list((case.folder / "checkpoint" / "state").rglob("*.zip")), "no snapshot or change log of RocksDB"


def test_refusals(case: Case) -> None:
    """Each rejection is one sentence, before anything is written."""
    case.run([make_event(0)])
    fitting = case.settings
    case.settings = replace(fitting, window="2 minutes")
    assert "was made with --window '1 minute', not with --window '2 minutes'" in case.refusal()
    case.settings = replace(fitting, slide="30 seconds")
    assert "was made with no --slide, not with --slide '30 seconds'" in case.refusal()
    case.settings, folder = fitting, case.folder
    case.folder = folder / "elsewhere"
    assert "holds the rollup of another checkpoint" in case.refusal()
    case.settings = replace(fitting, path=str(folder))
    assert "holds something that is no rollup" in case.refusal()
    case.settings = replace(fitting, path=str(folder / "new"), topic=case.topic)
    assert f"{case.topic} is read and would be written" in case.refusal()
    create_topic(case.broker, f"{case.topic}-deleted", cleanup_policy="delete")
    case.settings = replace(fitting, path=str(folder / "new"), topic=f"{case.topic}-deleted")
    assert "has cleanup.policy=delete" in case.refusal()
    assert not (folder / "new").exists()
    assert not case.folder.exists()
    case.settings = replace(case.settings, any_cleanup_policy=True)
    case.run([make_event(1)])


def test_a_start_that_fails_claims_nothing(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kafka may reject a topic, or Spark a column; then the corrected command is another one."""
    right = case.settings
    case.settings = replace(right, dimensions="kind")
    for step in ("create_topics", "roll_up_events"):
        monkeypatch.setattr(pipeline, step, raise_refusal)
        assert case.refusal() == "not this one"
        monkeypatch.undo()
    assert not (case.folder / "checkpoint").exists()
    assert not (case.folder / "table").exists()
    case.settings = right
    case.run([make_event(0), make_event(20)])
    assert case.results() == case.model.results(closed=True)


def raise_refusal(*_: Any) -> None:
    raise PipelineError("not this one")


def test_rollup_refuses_a_lost_table(case: Case) -> None:
    # A kill during the first start leaves this, and it does no harm.
    (case.folder / "table").mkdir()
    (case.folder / "table" / "__rollup.json.partial").touch()
    case.run([make_event(0), make_event(20)])
    shutil.move(case.folder / "table", case.folder / "moved")
    assert "is gone, and with it all earlier results" in case.refusal()
    shutil.move(case.folder / "moved", case.folder / "table")
    admin_of(case.broker).delete_topics([case.settings.topic])[case.settings.topic].result(30)
    assert f"the topic {case.settings.topic} is gone" in case.refusal()
