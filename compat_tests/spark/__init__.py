"""Spark as a client: every mode of its Kafka source and sink, on this broker or on Apache Kafka (docs/SPARK.md)."""
