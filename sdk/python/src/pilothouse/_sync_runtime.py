"""What only the synchronous half needs. `_async_runtime` has the same names."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from time import sleep
from typing import TypeVar

__all__ = ["ByteStream", "call", "check_callbacks", "protected", "sleep"]

T = TypeVar("T")

ByteStream = Iterable[bytes]

protected = nullcontext


_ASYNCHRONOUS = "expected a function, got an asynchronous one, which only AsyncPilothouse awaits"


def check_callbacks(*callbacks: Callable[..., object] | None) -> None:
    """Raises TypeError for asynchronous functions, which nothing would await."""
    for callback in callbacks:
        method = getattr(callback, "__call__", None)  # noqa: B004
        if inspect.iscoroutinefunction(callback) or inspect.iscoroutinefunction(method):
            raise TypeError(f"{_ASYNCHRONOUS}: {callback!r}")


def call(callback: Callable[[T], object], value: T) -> None:
    """Calls a function. Raises TypeError if its result is a coroutine."""
    result = callback(value)
    if inspect.iscoroutine(result):
        result.close()
        raise TypeError(f"{_ASYNCHRONOUS}: {callback!r}")
