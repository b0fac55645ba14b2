"""``make bench``: the same loads on this broker and on Apache Kafka 4.3.1, in turn on one machine."""
