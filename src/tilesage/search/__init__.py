"""How a move is chosen: greedy, expectimax, Monte Carlo tree search, rollouts."""
