"""`kafkacompat topics`, `groups` and others: the commands for any Kafka cluster, in the words of Kafka's own tools.

A module here declares the commands of one subject and imports little; `administration/` holds their work.
"""
