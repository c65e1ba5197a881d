from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from .._errors import PilothouseResponseError
from .._gen.models import ObserveOptionsInput
from .session import AsyncBrowserSession

# The observation after an action shows the model the changed page.
_OBSERVED: ObserveOptionsInput = {}


def _report_errors(function: Any) -> Any:
    """Returns errors of the service as results, so that a model can try something else."""

    @wraps(function)
    async def run(*args: Any, **arguments: Any) -> str:
        try:
            return str(await function(*args, **arguments))
        except PilothouseResponseError as error:
            return f"error {error.slug}: {error.detail or error}"

    return run


class AsyncPageTools:
    """Functions that drive a session for a model. Their docstrings and arguments describe them to the model."""

    def __init__(self, session: AsyncBrowserSession) -> None:
        self._session = session

    def __repr__(self) -> str:
        return f"{type(self).__name__}(session={self._session!r})"

    def functions(self) -> list[Callable[..., Any]]:
        """Returns all functions."""
        return [self.navigate, self.observe, self.tap, self.fill, self.press, self.read]

    @_report_errors
    async def navigate(self, url: str) -> str:
        """Loads a URL, and returns the page as text, in which each element has a ref."""
        return _text_of(await self._session.goto(url, observe=_OBSERVED))

    @_report_errors
    async def observe(self) -> str:
        """Returns the page as text, in which each element has a ref."""
        return (await self._session.observe())["snapshot"]

    @_report_errors
    async def tap(self, ref: str) -> str:
        """Taps the element with a ref, and returns the page."""
        return _text_of(await self._session.tap(ref=ref, observe=_OBSERVED))

    @_report_errors
    async def fill(self, ref: str, text: str) -> str:
        """Replaces the value of the field with a ref, and returns the page."""
        return _text_of(await self._session.fill(text=text, ref=ref, observe=_OBSERVED))

    @_report_errors
    async def press(self, key: str) -> str:
        """Presses a key, such as Enter, in the focused element, and returns the page."""
        return _text_of(await self._session.press(key, observe=_OBSERVED))

    @_report_errors
    async def read(self) -> str:
        """Returns the main text of the page as Markdown."""
        return (await self._session.read())["markdown"]


def _text_of(result: Any) -> str:
    return str(result.get("observation", {}).get("snapshot", ""))
