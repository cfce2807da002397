"""`python -m afterstate` is the command."""

import sys

from afterstate.cli import main

sys.exit(main())
