"""`kafkacompat doctor`: checks a connection to a broker stage by stage, and names the first thing that fails."""
