"""The entry point of `python -m ldpstream.device`."""

import sys

from ldpstream.device.command_line import run

if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
