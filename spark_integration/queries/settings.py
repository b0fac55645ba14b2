"""How a streaming query runs, and who is notified of its batches. Imports no pyspark."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spark_integration.errors import PipelineError


@dataclass(frozen=True)
class StreamOptions:
    """How a query runs, and who is notified of its batches.

    *trigger* is ``availableNow``, ``once``, or an interval such as ``10 seconds`` (Spark guide, Triggers). Continuous
    processing is none of them, since it has no batches and every pipeline is made of batches. *progress_json* and
    *prometheus* are files; *commit_group* is a consumer group. Raises PipelineError for any other trigger.
    """

    checkpoint_location: str
    trigger: str = "availableNow"
    query_name: str | None = None
    progress_json: Path | None = None
    prometheus: Path | None = None
    commit_group: str | None = None

    def __post_init__(self) -> None:
        trigger_arguments(self.trigger)


def trigger_arguments(text: str) -> dict[str, Any]:
    """Translate a trigger to the arguments of DataStreamWriter.trigger; raises PipelineError."""
    if text in ("availableNow", "once"):
        return {text: True}
    if re.fullmatch(r"\d+ (?:milliseconds?|seconds?|minutes?|hours?)", text):
        return {"processingTime": text}
    raise PipelineError(f"{text!r} is no trigger: give availableNow, once, or an interval like '10 seconds'")
