"""`python -m tilesage` is the command."""

import sys

from tilesage.cli import command

sys.exit(command())
