"""Python imports this file when it starts, as the folder is on the path of what tests start."""

import repeatable

repeatable.install()
