"""Hostile input: good files and texts, broken in thousands of ways, and what must hold for each of them.

`mutations` breaks things, `targets` says what is attacked and how, `watch` holds the attacked code to its promises:
no crash, no hang, no memory out of proportion, one clear line, and the right exit status.
"""
