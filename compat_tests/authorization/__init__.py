"""Every right that an API asks for: the same questions to Apache Kafka and to this broker, with and without the right."""
