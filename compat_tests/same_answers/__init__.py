"""One script of raw requests for two brokers, and their answers field by field."""
