"""From a position to something to look at: text, ANSI, SVG, PNG, the way that tiles move; colours by game.

In come states and indices of tiles; out go strings and pictures. A game without colours of its own gets those of any
game. Used by environments, notebooks, the terminal and the page.
"""
