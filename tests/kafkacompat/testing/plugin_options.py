"""The options by which a session of pytest loads the plugin of this tree once, whether it is installed or not."""

from __future__ import annotations

from importlib.metadata import entry_points

IS_INSTALLED = bool(entry_points(group="pytest11", name="kafkacompat"))
PLUGIN = () if IS_INSTALLED else ("-p", "kafkacompat.testing.plugin")
"""An installed plugin is loaded without an option, and a second time it is an error."""
