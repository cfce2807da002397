"""What only 2048 has: tile-downgrading, solved endgames, and second networks for the end of the chain.

Generic search reaches it through options of players and properties of the game; it imports nothing of their builders.
"""
