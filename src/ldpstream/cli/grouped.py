"""Options that go together, as one argument of a command."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from typing import Any, get_type_hints


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """Let a parameter whose type is a dataclass of options stand for its fields.

    Typer reads signatures: it is shown one with the fields in place of the parameter, and the
    command gets them back as an object.

    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Place:
    ...     x: int = 0
    ...     y: int = 0
    >>> @grouped
    ... def move(place: Place, far: bool = False) -> None:
    ...     print(place, far)
    >>> list(inspect.signature(move).parameters)
    ['x', 'y', 'far']
    >>> move(x=1, y=2, far=True)
    Place(x=1, y=2) True
    """
    signature = inspect.signature(command, eval_str=True)
    groups = {
        parameter.name: parameter.annotation
        for parameter in signature.parameters.values()
        if isinstance(parameter.annotation, type) and is_dataclass(parameter.annotation)
    }

    @functools.wraps(command)
    def with_fields(**given: Any) -> None:
        for name, group in groups.items():
            of_group = {field.name: given.pop(field.name) for field in fields(group)}
            given[name] = group(**of_group)
        command(**given)

    shown: list[inspect.Parameter] = []
    for parameter in signature.parameters.values():
        if parameter.name in groups:
            shown.extend(_options(groups[parameter.name]))
        else:
            shown.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))
    with_fields.__signature__ = signature.replace(parameters=shown)  # type: ignore[attr-defined]
    with_fields.__annotations__ = {parameter.name: parameter.annotation for parameter in shown}
    return with_fields


def _options(group: type) -> Iterator[inspect.Parameter]:
    hints = get_type_hints(group, include_extras=True)
    for field in fields(group):
        yield inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=field.default,
            annotation=hints[field.name],
        )
