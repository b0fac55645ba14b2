"""Faults as data: rules that let a broker answer errors, lose, cut or damage its responses, for tests of clients.

docs/testing/faults.md is their manual. `rules`, `parsing`, `active` and `targets` are pure; `dispatcher` applies them to the requests of
a broker that was started with a `Faults`. A broker without one imports nothing of this package.
"""

from kafkacompat.faults.active import Faults
from kafkacompat.faults.rules import FaultError, FaultRule

__all__ = ["FaultError", "FaultRule", "Faults"]
