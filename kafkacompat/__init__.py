"""A broker that speaks the Kafka protocol over its own storage, on Twisted."""

__version__ = "0.1.0"
