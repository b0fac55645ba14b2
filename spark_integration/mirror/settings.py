"""Names that the command line shares with the mirror. Imports no pyspark."""

from __future__ import annotations

# The default name of the topic that maps offsets.
OFFSET_MAP = "kafkacompat-offset-map"
# Options of the source that let several tasks read one partition, whose order would be lost.
SPLITTING = ("minPartitions", "maxRecordsPerPartition")
