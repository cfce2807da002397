"""What compiled code of searches and players hands around."""

NO_MOVE = -1  # instead of an action, when none is legal
NOWHERE = -1  # instead of a way to turn a board, when it is not to be handed over
