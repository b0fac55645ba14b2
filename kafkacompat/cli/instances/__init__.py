"""`kafkacompat instances`: administration of the instances of any broker, by requests alone."""
