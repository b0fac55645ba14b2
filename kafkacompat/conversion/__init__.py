"""Conversion of records between formats, in other processes where it is much."""

from kafkacompat.conversion.down import ConvertedRecords, Unconverted
from kafkacompat.conversion.service import Conversions, is_quick

__all__ = ["Conversions", "ConvertedRecords", "Unconverted", "is_quick"]
