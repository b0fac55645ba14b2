"""Properties in environment variables, named as the container image of Apache Kafka names them.

A variable's name is the prefix and the property in capitals. One underscore is a dot, two are an underscore, three are a dash:
`KAFKACOMPAT_LOG_RETENTION_MS` is `log.retention.ms`. The image's own prefix is `KAFKA_`; variables with that one have no effect
here, because the image's start script also reads some that are no properties.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

PREFIX = "KAFKACOMPAT_"
SWITCHES = frozenset({"KAFKACOMPAT_PORTABLE", "KAFKACOMPAT_PLAIN_WALK", "KAFKACOMPAT_BOOTSTRAP_SERVER"})
"""Variables with the prefix that are no properties.

See `storage/files/operating_system.py`, `wire/walk_form.py` and `cli/remote/options.py`.
"""

_SERVICE_LINK = re.compile(r"KAFKACOMPAT_(PORT|SERVICE_HOST|SERVICE_PORT)(_.*)?")
"""Variables that Kubernetes sets in every container beside a Service with the name kafkacompat."""

_UNDERSCORES = re.compile("___|__|_")
_MEANINGS = {"_": ".", "__": "_", "___": "-"}


def property_of_variable(variable: str) -> str | None:
    """Return the property that a variable sets, or None."""
    if not variable.startswith(PREFIX) or variable in SWITCHES or _SERVICE_LINK.fullmatch(variable):
        return None
    return _UNDERSCORES.sub(lambda match: _MEANINGS[match[0]], variable.removeprefix(PREFIX).lower())


def read_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Collect the properties that environment variables set."""
    named = ((property_of_variable(variable), value) for variable, value in environment.items())
    return {name: value for name, value in named if name}
