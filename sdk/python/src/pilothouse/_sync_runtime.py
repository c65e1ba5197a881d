"""What only the synchronous half needs. `_async_runtime` has the same names."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import nullcontext
from time import sleep
from typing import TypeVar

__all__ = ["ByteStream", "call", "protected", "sleep"]

T = TypeVar("T")

ByteStream = Iterable[bytes]

protected = nullcontext


def call(callback: Callable[[T], object], value: T) -> None:
    """Calls a function."""
    callback(value)
