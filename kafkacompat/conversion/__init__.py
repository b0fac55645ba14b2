"""Conversion and checking of records, in worker processes if there are many."""

from kafkacompat.conversion.job import ConvertedRecords, RegionToConvert
from kafkacompat.conversion.service import CONVERSION_TIMEOUT_S, Conversions

__all__ = ["CONVERSION_TIMEOUT_S", "Conversions", "ConvertedRecords", "RegionToConvert"]
