"""Conversion and checking of records, in other processes where it is much."""

from kafkacompat.conversion.down import ConvertedRecords, Unconverted
from kafkacompat.conversion.service import CONVERSION_TIMEOUT_S, Conversions

__all__ = ["CONVERSION_TIMEOUT_S", "Conversions", "ConvertedRecords", "Unconverted"]
