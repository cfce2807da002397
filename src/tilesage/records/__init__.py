"""Recorded games: written, read, replayed, judged and counted.

In come lines of text, or played games; out go `Record`s, positions, verdicts and statistics. The referee and its
rule books import nothing of games/ (docs/records.md): two statements of the rules must agree. A game without a rule
book is judged by its own rules, and the verdict says so.
"""
