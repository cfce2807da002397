"""The five reports that this project makes real, each as a file of data: its method, its figures, its commands.

Comes in: the name of a report. Goes out: steps that ran, their figures as small files, a page with a verdict for
every reported figure. report.py reads the data, steps.py runs, cells.py judges, page.py and drawings.py draw.
"""

from tilesage.reports.report import NAMES, find_report

__all__ = ["NAMES", "find_report"]
