"""Conversion of records between formats, in other processes where it is much."""

from kafkacompat.conversion.down import ConvertedRecords, Unconverted
from kafkacompat.conversion.processes import ProcessWorkers, Workers
from kafkacompat.conversion.service import Conversions, is_quick

__all__ = ["Conversions", "ConvertedRecords", "ProcessWorkers", "Unconverted", "Workers", "is_quick"]
