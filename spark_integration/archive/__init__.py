"""Topics into Parquet, Delta or Iceberg, exactly once by offsets (docs/SPARK.md, decision 008)."""

from spark_integration.archive.reading import COLUMNS, SCHEMA, check_files, read_archive

__all__ = ["COLUMNS", "SCHEMA", "check_files", "read_archive"]
