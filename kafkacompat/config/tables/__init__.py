"""The properties of a broker, one row each, grouped by what they are about.

The columns are separated by `` | ``; a row that starts with spaces continues the one before:

1. the name;
2. the type: boolean, int (32 bits), short (16), long (64), double, string, list (commas), class or password;
3. the default, written as in a properties file; ``null`` is none at all, which an empty column is not;
4. what is allowed beyond the type, in the words of `values.RULES`;
5. flags: ``U`` used here (the others are accepted and have no effect), ``C`` and ``B`` changeable while the
   broker runs, for the whole cluster or only per broker, ``I`` internal: described only when it is set;
6. one line of text.

Names, types, defaults and bounds are those of Apache Kafka 4.3.1 (its ``KafkaConfig.configDef()``), which
`compat_tests/test_config_facts.py` compares; docs/DIFFERENCES.md lists the defaults that are our own.
"""
