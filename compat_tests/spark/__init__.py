"""Spark as a client: every mode of its Kafka source and sink, on our broker or on Apache Kafka (docs/SPARK.md)."""
