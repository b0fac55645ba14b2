"""`kafkacompat produce` and `kafkacompat consume`: records of any Kafka cluster, over librdkafka."""
