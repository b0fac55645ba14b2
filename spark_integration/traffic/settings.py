"""What is simulated. Imports no pyspark."""

from __future__ import annotations

from dataclasses import dataclass

from spark_integration.errors import PipelineError

ALGORITHMS = ("article", "shared", "static")
"""What is compared, in the order of tables and plots."""
COLUMNS = ("instance", "broker", "second", "bytes", "limit_bytes")
"""The header of a recorded file: an instance's bytes on a broker in a second, which clients wanted to send, and its limit."""
PARTITIONS = "partitions"
"""A further column, which may be missing: the number of the instance's partitions on the broker; 1 otherwise."""


@dataclass(frozen=True)
class TrafficSettings:
    """Recorded traffic from *path*, or made traffic of *instances* over *brokers* for *seconds* from *seed*.

    Plots, figures and the table go to *output*; nothing is written without it.
    """

    path: str | None = None
    instances: int = 1000
    brokers: int = 20
    seconds: int = 60
    interval_ms: int = 1000
    seed: int = 1
    output: str | None = None

    def check(self) -> None:
        """Raise PipelineError for figures that nothing can be made of."""
        if self.brokers < 3:
            raise PipelineError(f"--brokers is {self.brokers}: made traffic needs at least 3")
        if self.seconds < 20:
            raise PipelineError(f"--seconds is {self.seconds}: give at least 20, as the first ten do not count")
        if self.instances < 1:
            raise PipelineError(f"--instances is {self.instances}: give at least 1")
        if not 100 <= self.interval_ms <= 60_000:
            raise PipelineError(f"--interval-ms is {self.interval_ms}: give 100 to 60000")
