"""How long the reactor is busy between two looks for events."""

from __future__ import annotations

from dataclasses import dataclass, field

from kafkacompat.metrics.histogram import Histogram


@dataclass(slots=True)
class ReactorTurns:
    """The lengths of the turns since ``begun_s``, by the reactor's clock."""

    begun_s: float
    lengths: Histogram = field(default_factory=Histogram)
