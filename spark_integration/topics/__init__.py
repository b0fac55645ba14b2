"""Kafka topics read and written: clusters, sources, sinks, offsets, headers of origin."""
