"""Conversion of records between formats, in other processes where it is much."""

from kafkacompat.conversion.down import ConvertedRecords, Unconverted
from kafkacompat.conversion.processes import ProcessWorkers, Workers
from kafkacompat.conversion.service import IN_PLACE_BYTES, Conversions

__all__ = ["IN_PLACE_BYTES", "Conversions", "ConvertedRecords", "ProcessWorkers", "Unconverted", "Workers"]
