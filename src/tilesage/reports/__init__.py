"""The five reports, each as a list of commands and a page that puts our figures beside the reported ones."""

from __future__ import annotations

from tilesage.reports.report import Report, find_report, names

__all__ = ["Report", "find_report", "names"]
