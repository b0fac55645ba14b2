"""The demo without a broker and without Spark."""
