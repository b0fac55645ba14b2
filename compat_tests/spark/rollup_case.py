"""A topic of events and its rollup, for the tests of the pipeline."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from compat_tests.brokers import Broker
from compat_tests.confluent import create_topic, produce
from compat_tests.spark.rollups import MEASURES, Event, Model, read_last_values, read_table
from spark_integration.errors import PipelineError
from spark_integration.queries.settings import StreamOptions
from spark_integration.rollup.pipeline import RollupSummary, rollup
from spark_integration.rollup.settings import RollupSettings


class Case:
    """A topic of events and its rollup, one batch a run."""

    def __init__(self, spark: Any, broker: Broker, topic: str, folder: Path, **options: Any) -> None:
        create_topic(broker, topic, 2)
        options = {
            name: value.format(topic=topic) if isinstance(value, str) else value for name, value in options.items()
        }
        self.spark, self.broker, self.topic, self.folder = spark, broker, topic, folder
        self.settings = RollupSettings(
            **{
                "topic": f"{topic}-results",
                "path": str(folder / "table"),
                "window": "1 minute",
                "watermark": "5 minutes",
                "time_field": "time",
                "dimensions": "place.country",
                "measures": MEASURES,
                **options,
            }
        )
        self.model = Model()

    def produce(self, values: Sequence[str]) -> None:
        produce(self.broker, self.topic, list(values))

    def run(self, events: Sequence[Event] = (), **source: str) -> RollupSummary:
        """Produce events, and roll up all that exist."""
        self.produce([json.dumps(event) for event in events])
        if events:
            self.model.batch(events)
        options = {"kafka.bootstrap.servers": self.broker.bootstrap, "subscribe": self.topic}
        stream = StreamOptions(str(self.folder / "checkpoint"))
        return rollup(self.spark, {"startingOffsets": "earliest", **options, **source}, self.settings, stream)

    def results(self) -> Any:
        """Return the results in topic and table, which must be equal."""
        last, _ = read_last_values(self.broker, self.settings.topic)
        assert read_table(self.folder / "table") == last
        return last

    def account(self) -> dict[str, int]:
        """Return the totals of all batches."""
        folder = self.folder / "checkpoint" / "rollup"
        last = max(int(path.name) for path in folder.iterdir() if path.name.isdecimal())
        account: dict[str, int] = json.loads((folder / str(last)).read_text())
        return account

    def refusal(self) -> str:
        with pytest.raises(PipelineError) as caught:
            self.run()
        return str(caught.value)


def with_options(**options: Any) -> pytest.MarkDecorator:
    """Set the options of a test's `case`, by its fixture `more_options`."""
    return pytest.mark.parametrize("more_options", [options], indirect=True, ids=["options"])
