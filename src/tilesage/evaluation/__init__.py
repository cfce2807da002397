"""Games played and counted: evaluations on all cores, advice for a position, sweeps over settings.

In come a player and a number of games; out go statistics with their errors, records, and what each move led to. Game
number i under a seed is the same game whatever the number of workers, on every device.
"""
