"""What is left in the bag or the deck, of which a record tells only what came out of it."""

from __future__ import annotations

from collections.abc import Sequence

from tilesage.games import Game


class Supply:
    """So many each of 1, 2 and 3, drawn without putting back and filled again when it is empty."""

    def __init__(self, game: Game) -> None:
        self.game, self.copies = game, game.hint.copies if game.hint else 0
        self.left = [self.copies] * 3

    def take(self, hint: Sequence[int]) -> None:
        """What was drawn; several tiles, or a large one, are a bonus, which does not come from here."""
        if len(hint) != 1 or not 1 <= hint[0] <= 3:
            return
        self.left[hint[0] - 1] = max(0, self.left[hint[0] - 1] - 1)
        if not any(self.left):
            self.left = [self.copies] * 3

    def fields(self, hint: Sequence[int]) -> dict[str, str]:
        """The hint and what is left, in the words that `game.read` knows."""
        if self.game.hint is None:
            return {}
        shown = {"hint": "+".join(str(self.game.tiles[index]) for index in hint)}
        if self.copies > 1:
            return {**shown, "deck": ",".join(map(str, self.left))}
        return {**shown, "bag": "".join(str(i + 1) for i in range(3) if self.left[i])} if self.copies else shown
