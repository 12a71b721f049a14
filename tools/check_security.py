"""Run bandit without its warnings about a `nosec` comment that suppresses nothing.

Bandit checks each part of a statement by itself and warns about every part that a `nosec` covers
without a finding; usually only one part has one. Other findings are reported as usual. A `nosec`
that has become useless is found by ruff, through the `noqa` of the same rule beside it (RUF100).
"""

from __future__ import annotations

import logging

from bandit.cli.main import main

logging.getLogger("bandit.core.tester").addFilter(
    lambda record: not str(record.msg).startswith("nosec encountered")
)
main()
