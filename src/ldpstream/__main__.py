"""`python -m ldpstream` is `ldpstream`."""

from ldpstream.cli import main

main()
