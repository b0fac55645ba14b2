"""Topics into Parquet, Delta or Iceberg, exactly once by offsets (docs/SPARK.md, decision 008)."""

from spark_integration.archive.command import command
from spark_integration.archive.layout import COLUMNS, SCHEMA, FileOptions
from spark_integration.archive.reading import check_files, read_archive
from spark_integration.archive.run import ArchiveSummary, archive

__all__ = [
    "COLUMNS",
    "SCHEMA",
    "ArchiveSummary",
    "FileOptions",
    "archive",
    "check_files",
    "command",
    "read_archive",
]
