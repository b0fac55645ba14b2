"""The settings of a rollup: what it counts, and where the results go. Imports no pyspark."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from spark_integration.errors import PipelineError
from spark_integration.rollup.durations import WindowLengths, parse_duration_ms, parse_windows
from spark_integration.rollup.measures import Measure, parse_measures
from spark_integration.rollup.paths import Path, check_paths, column_name, parse_path
from spark_integration.topics.names import is_legal_name

# Columns that every rollup has, in this order. `date` is that of `window_start` in UTC; it is in the table alone.
WINDOW_COLUMNS = ("window_start", "window_end")
TABLE_COLUMNS = ("date", "batch")
# Spark calls the window so while it counts.
RESERVED = (*WINDOW_COLUMNS, *TABLE_COLUMNS, "window")
MODES = ("append", "update")
FORMATS = ("parquet", "delta")
# Options that a checkpoint is bound to: with other ones its state would be wrong.
FIXED = (
    "time_field",
    "window",
    "slide",
    "watermark",
    "dimensions",
    "measures",
    "mode",
    "topic",
    "path",
    "format",
)


@dataclass(frozen=True)
class RollupSettings:
    """Events by windows and dimensions, into a compacted topic and a table.

    Lengths of time are in Spark's words (``5 minutes``). *time_field* and *dimensions* are paths in the JSON value;
    without *time_field* a record's own timestamp counts. *measures*: see `rollup.measures`. *mode* ``append`` writes a
    window once it is over, ``update`` with every batch that changes it. *dead_topic* receives records that cannot be
    parsed.
    """

    topic: str
    path: str
    window: str
    watermark: str
    slide: str | None = None
    time_field: str | None = None
    dimensions: str = ""
    measures: str = "count"
    mode: str = "append"
    format: str = "parquet"
    retention: str | None = None
    partitions: int = 1
    dead_topic: str | None = None
    any_cleanup_policy: bool = False

    def check(self) -> None:
        """Raise PipelineError for settings that contradict themselves or Kafka; asks and writes nothing."""
        _ = self.windows, self.watermark_ms, self.retention_ms, self.time_path
        if self.mode not in MODES or self.format not in FORMATS:
            raise PipelineError(
                f"--mode is one of {', '.join(MODES)} and --format one of {', '.join(FORMATS)}: correct them"
            )
        if self.mode == "update" and self.format == "parquet":
            raise PipelineError(
                "--mode update changes rows of the table, which Parquet cannot: give --format delta, or --mode append"
            )
        if self.partitions < 1:
            raise PipelineError(f"--partitions {self.partitions} is no number of partitions: give 1 or more")
        for topic in filter(None, (self.topic, self.dead_topic)):
            if not is_legal_name(topic):
                raise PipelineError(f"{topic!r} is no topic's name: give letters, digits, . _ and -")
        check_paths(self.paths)
        if twice := _find_duplicate([*RESERVED, *self.dimension_names, *(measure.name for measure in self.columns)]):
            raise PipelineError(f"two columns would be called {twice}: name one of them, like sum(amount) as total")

    @cached_property
    def windows(self) -> WindowLengths:
        """Length and interval of the windows."""
        return parse_windows(self.window, self.slide)

    @cached_property
    def watermark_ms(self) -> int:
        """How much later than the latest event another one may arrive and still count."""
        return parse_duration_ms(self.watermark, "watermark")

    @cached_property
    def retention_ms(self) -> int | None:
        """How long after the watermark a window is kept; None: for ever."""
        return None if self.retention is None else parse_duration_ms(self.retention, "retention")

    @cached_property
    def time_path(self) -> Path | None:
        """The path of an event's time in its value."""
        return None if self.time_field is None else parse_path(self.time_field)

    @cached_property
    def dimension_paths(self) -> list[Path]:
        """The paths of the dimensions in an event's value."""
        return [parse_path(text) for text in self.dimensions.split(",") if text.strip()]

    @property
    def dimension_names(self) -> list[str]:
        """The names of the dimensions' columns."""
        return [column_name(path) for path in self.dimension_paths]

    @cached_property
    def columns(self) -> list[Measure]:
        """The measures."""
        return parse_measures(self.measures)

    @property
    def paths(self) -> list[Path]:
        """The paths of all fields that are read of an event's value."""
        measured = [measure.path for measure in self.columns if measure.path is not None]
        return [*([self.time_path] if self.time_path else []), *self.dimension_paths, *measured]

    @property
    def key_columns(self) -> list[str]:
        """The columns that identify a result."""
        return ["window_start", *self.dimension_names]

    @property
    def value_columns(self) -> list[str]:
        """All columns of a result."""
        return [*WINDOW_COLUMNS, *self.dimension_names, *(measure.name for measure in self.columns)]

    def fixed_options(self) -> dict[str, str | None]:
        """Return the options that a checkpoint is bound to."""
        return {name: getattr(self, name) for name in FIXED}


def _find_duplicate(names: Iterable[str]) -> str | None:
    # Spark's names ignore case.
    return next((name for name, count in Counter(name.lower() for name in names).items() if count > 1), None)
