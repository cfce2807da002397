"""What an evaluation has found, for comparisons."""

from __future__ import annotations

from tilesage.evaluation.evaluate import Evaluation


def figures(evaluation: Evaluation) -> tuple[object, ...]:
    """All that does not depend on the clock."""
    s = evaluation.statistics
    return s.scores, s.slides, s.ends
