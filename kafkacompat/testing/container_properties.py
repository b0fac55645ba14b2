"""The variables of Kafka's container images as properties of a broker."""

from __future__ import annotations

import re
from collections.abc import Mapping

VARIABLE_PREFIX = "KAFKA_"
PROPERTY_OF_VARIABLE = {"broker.id": "node.id"}
"""Properties that test brokers have by another name."""

_UNUSED = re.compile(
    r"""
    (advertised\.)?listeners | listener\.security\.protocol\.map | inter\.broker\.listener\.name   # the container chooses its listener
    | zookeeper\..* | process\.roles | controller\..*                                              # there is one broker, by itself
    | log\.dirs?                                                                                   # the data are in memory
    | (heap\.|jvm\.performance\.|gc\.log\.)?opts | jmx\..* | log4j\..* | tools\.log4j\..*          # there is no JVM
    """,
    re.VERBOSE,
)
_UNDERSCORES = {1: ".", 2: "_", 3: "-"}


def find_property_name(variable: str) -> str | None:
    """Return the property that a variable of Kafka's images sets: ``KAFKA_NUM_PARTITIONS`` sets num.partitions.

    Two underscores stand for one, three for a hyphen. Returns None for a variable without effect on a test broker.
    """
    if not variable.startswith(VARIABLE_PREFIX):
        return None
    text = variable.removeprefix(VARIABLE_PREFIX).lower()
    name = re.sub("_{1,3}", lambda match: _UNDERSCORES[len(match[0])], text)
    return None if _UNUSED.fullmatch(name) else PROPERTY_OF_VARIABLE.get(name, name)


def read_variables(environment: Mapping[str, object]) -> dict[str, str]:
    """Return the properties that the variables of a container set."""
    named = ((find_property_name(variable), value) for variable, value in environment.items())
    return {name: str(value) for name, value in named if name is not None}
