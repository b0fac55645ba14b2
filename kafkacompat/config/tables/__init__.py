"""The properties of a broker, one row each, grouped by subject.

The columns are separated by `` | ``; a row that starts with spaces continues the one before:

1. the name;
2. the type: boolean, int (32 bits), short (16), long (64), double, string, list (commas), class or password;
3. the default, written as in a properties file; ``null`` means no value, an empty column an empty text;
4. the allowed values, as `values.parse_rule` reads them;
5. flags: ``U`` used here (the others are accepted and have no effect), ``C`` and ``B`` changeable while the
   broker runs, for the whole cluster or only per broker, ``I`` internal: described only when it is set;
6. one line of text.

Names, types, defaults and bounds are those of ``KafkaConfig.configDef()`` in Apache Kafka 4.3.1;
`compat_tests/test_config_facts.py` compares them. docs/DIFFERENCES.md lists the defaults that differ.
"""
