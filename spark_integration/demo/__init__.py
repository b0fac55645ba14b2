"""``make demo``: 336,776 real flights through confluent-kafka, kafka-python and Spark."""
