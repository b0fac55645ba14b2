"""Counting what the broker does, cheaply enough for every request.

Nothing here knows an exposition format: `kafkacompat.monitoring` reads these counters at a scrape. A counter of a
hot path is a plain number or a list of numbers; whatever can be computed from the broker's own state at a scrape is not counted.
"""
