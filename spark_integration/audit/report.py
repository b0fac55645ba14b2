"""An audit's report: one HTML file that needs no other."""

from __future__ import annotations

import os
from pathlib import Path

from jinja2 import Environment, PackageLoader

from spark_integration.audit import formatting
from spark_integration.audit.kinds import KINDS, describe_count
from spark_integration.audit.plots import draw_plots
from spark_integration.audit.summary import AuditSummary


def render_report(summary: AuditSummary) -> str:
    """Return the report's HTML."""
    # The template is loaded through the package, which may lie in a zip.
    environment = Environment(loader=PackageLoader("spark_integration.audit", "."), autoescape=True, trim_blocks=True)
    template = environment.get_template("report.html")
    return template.render(
        summary=summary, kinds=KINDS, describe_count=describe_count, plots=draw_plots(summary), format=formatting
    )


def write_report(path: Path, summary: AuditSummary) -> None:
    """Write the report, so that readers see the old file or the whole new one."""
    partial = path.with_name(f".{path.name}.partial")
    partial.write_text(render_report(summary), encoding="utf-8")
    os.replace(partial, path)
