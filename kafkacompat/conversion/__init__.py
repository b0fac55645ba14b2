"""Conversion and checking of records, in other processes where it is much."""

from kafkacompat.conversion.down import ConvertedRecords, Unconverted
from kafkacompat.conversion.service import Conversions

__all__ = ["Conversions", "ConvertedRecords", "Unconverted"]
