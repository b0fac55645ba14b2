"""The commands `kafkacompat spark NAME`; declaring them imports no pyspark, so `--help` needs none."""
