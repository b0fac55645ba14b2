"""The columns of a dead letter that `--where` and `--repair` may name. Imports no pyspark."""

COLUMNS = ("key", "value", "headers", "reason", "detail", "topic", "partition", "offset", "timestamp", "redriven")
