"""``python -m privgp`` is the command ``privgp``."""

import sys

from privgp.command import main

if __name__ == "__main__":
    sys.exit(main())
