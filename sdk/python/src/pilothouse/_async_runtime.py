"""What only the asynchronous half needs. `_sync_runtime` has the same names."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterable, Callable, Generator
from contextlib import contextmanager
from typing import TypeVar

from anyio import move_on_after, sleep

__all__ = ["ByteStream", "call", "check_callbacks", "protected", "sleep"]

T = TypeVar("T")

ByteStream = AsyncIterable[bytes]

# Seconds for the end of a session after a cancelled task.
_CLEANUP = 10


def check_callbacks(*callbacks: Callable[..., object] | None) -> None:
    """Accepts all functions: `call` awaits the asynchronous ones."""


async def call(callback: Callable[[T], object], value: T) -> None:
    """Calls a function, and awaits its result if it is awaitable."""
    result = callback(value)
    if inspect.isawaitable(result):
        await result


@contextmanager
def protected() -> Generator[None, None, None]:
    """Lets a block finish although its task is cancelled."""
    with move_on_after(_CLEANUP, shield=True):
        yield
