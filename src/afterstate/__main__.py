"""`python -m afterstate` is the command."""

import sys

from afterstate.cli import command

sys.exit(command())
