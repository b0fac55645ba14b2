"""Topics into Parquet, Delta or Iceberg, exactly once by offsets (docs/SPARK.md, decision 008)."""
