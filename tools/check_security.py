"""Run bandit, without its warnings that a `nosec` mark stands beside more than one string.

It looks at each part of a statement by itself: of the parts that a mark covers, usually one is a
finding. What is found elsewhere is told as ever. A mark that has become useless is found by ruff,
whose `noqa` for the same rule stands beside it (RUF100).
"""

from __future__ import annotations

import logging

from bandit.cli.main import main

logging.getLogger("bandit.core.tester").addFilter(
    lambda record: not str(record.msg).startswith("nosec encountered")
)
main()
