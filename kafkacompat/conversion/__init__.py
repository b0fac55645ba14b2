"""Conversion of records between formats, in other processes where it is much."""

from kafkacompat.conversion.processes import ProcessWorkers, Workers
from kafkacompat.conversion.service import Conversions, ConvertedRecords

__all__ = ["Conversions", "ConvertedRecords", "ProcessWorkers", "Workers"]
