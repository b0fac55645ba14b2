"""TLS on listeners and towards other brokers: settings by Kafka's properties, key stores, contexts, names of users."""
