"""How a move is chosen: players by name, greedy, expectimax, tree search, UCT, rollouts, players in plain Python.

In come a game, a value function (a network, or a function of the user) and a position; out come a move and what each
move is worth. agents.py is the entry, registry.py lists the built-in players. game_2048/ has what only 2048 has.
"""
