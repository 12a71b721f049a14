"""The command `ldpstream`, as `python -m ldpstream`."""

from ldpstream.cli import main

main()
