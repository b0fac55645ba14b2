"""Frameworks that are built on Kafka's clients, each running a job whose result is counted again without it."""
