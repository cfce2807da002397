"""Update rules as somebody outside the package writes them."""

from __future__ import annotations

import numpy as np

from tilesage.core.compiler import compiled
from tilesage.learning import UpdateRule

KEPT, SMALL = np.float32(0.99), np.float32(1e-3)
ONE = np.float32(1)


@compiled
def rmsprop_update(weights, memory, entries, error, rate):
    """RMSprop (Tieleman and Hinton 2012): steps in units of the usual error of each weight."""
    for k in range(len(entries)):
        i = np.int64(entries[k])
        memory[i] = KEPT * memory[i] + (ONE - KEPT) * error * error
        weights[i] += rate * error / (np.sqrt(memory[i]) + SMALL)


def sign_update(weights, memory, entries, error, rate):
    """Only the sign of the error counts. (Not compiled here: that is done where it is needed.)"""
    for k in range(len(entries)):
        weights[entries[k]] += rate * np.sign(error)


rmsprop = UpdateRule("RMSprop", rmsprop_update, rate="10", memory=(100.0,), softens=True)
signs = UpdateRule("steps of one size", sign_update, rate="1")
