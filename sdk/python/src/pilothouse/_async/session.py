from __future__ import annotations

import base64
from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import quote

from typing_extensions import Self, Unpack

from .._async_runtime import protected
from .._errors import PilothouseError, PilothouseResponseError, add_note
from .._gen.models import (
    CreateViewLinkRequest,
    FillOptions,
    InteractAction,
    InteractOptions,
    InteractResult,
    MarkdownOptions,
    NavigateOptions,
    NavigateResult,
    Observation,
    ObserveRequest,
    PdfOptions,
    PressOptions,
    ReadRequest,
    ReadResult,
    ScreenshotOptions,
    ScrollOptions,
    ServiceEvent,
    Session,
    SessionState,
    TapOptions,
    TypeOptions,
    WaitCondition,
    WaitOptions,
    WaitResult,
)
from .._interactions import split_options
from .._options import CallOptions
from .event_stream import StreamSource, open_events
from .files import AsyncSessionFiles
from .transport import AsyncTransport

if TYPE_CHECKING:
    from playwright.async_api import Browser

# Types of events after which a session's stream ends.
_LAST_EVENTS = frozenset({"session.completed", "session.failed"})

# Size and largest number of the parts that `markdown()` reads. The size is the largest that the service accepts.
_PART_BYTES, _MAX_PARTS = 65_536, 64


class AsyncBrowserSession:
    """
    A browser session, which a `with` block ends; elsewhere call `end()`. Navigations and interactions have an
    idempotency key, so that a retry does not repeat them.
    """

    def __init__(self, transport: AsyncTransport, data: Session) -> None:
        self.id: str = data["id"]
        self.data = data
        """The session as it was when it was created or requested. `state()` returns the current state."""
        self._transport = transport
        self._path = f"/v1/sessions/{quote(self.id, safe='')}"
        self.files: AsyncSessionFiles = AsyncSessionFiles(transport, self._path)
        """Files that pages can upload, and files that pages downloaded."""

    async def goto(
        self, url: str, *, options: CallOptions | None = None, **request: Unpack[NavigateOptions]
    ) -> NavigateResult:
        """Loads a URL. Returns when the page has reached `wait_until`, by default `load`."""
        return cast(NavigateResult, await self._post("navigate", {"url": url, **request}, options))

    async def tap(
        self, selector: str | None = None, *, options: CallOptions | None = None, **request: Unpack[TapOptions]
    ) -> InteractResult:
        """Taps an element by its CSS `selector` or its `ref` in an observation, or the point `x`, `y`."""
        return await self._act("tap", {"selector": selector}, request, options)

    async def fill(
        self,
        selector: str | None = None,
        text: str | None = None,
        *,
        options: CallOptions | None = None,
        **request: Unpack[FillOptions],
    ) -> InteractResult:
        """Replaces the value of a field, by its CSS `selector` or its `ref`. An empty `text` clears the field."""
        if text is None:
            raise TypeError('fill() needs a text: text="" clears the field')
        return await self._act("fill", {"selector": selector, "text": text}, request, options)

    async def type(
        self, text: str, *, options: CallOptions | None = None, **request: Unpack[TypeOptions]
    ) -> InteractResult:
        """Types text key by key, into an element if there is a `selector` or `ref`, else into the focused one."""
        return await self._act("type", {"text": text}, request, options)

    async def press(
        self, key: str, *, options: CallOptions | None = None, **request: Unpack[PressOptions]
    ) -> InteractResult:
        """Presses a key, such as `Enter`, in an element if there is a `selector` or `ref`, else in the focused one."""
        return await self._act("key", {"key": key}, request, options)

    async def scroll(self, *, options: CallOptions | None = None, **request: Unpack[ScrollOptions]) -> InteractResult:
        """Scrolls the page by `dx` and `dy`, or makes an element visible."""
        return await self._act("scroll", {}, request, options)

    async def interact(
        self, action: InteractAction, *, options: CallOptions | None = None, **request: Unpack[InteractOptions]
    ) -> InteractResult:
        """Performs any action of the API, such as `select`, `check`, `upload` or `drag`."""
        return cast(InteractResult, await self._post("interact", {"action": action, **request}, options))

    async def wait(
        self,
        condition: str | WaitCondition,
        *,
        options: CallOptions | None = None,
        **request: Unpack[WaitOptions],
    ) -> WaitResult:
        """
        Waits for a condition: a CSS selector, such as `"#done"`, or a dictionary with a `kind`: `selector` (with
        `selector` and `state`), `text` (with `text`), `url` (with `pattern`), `load_state` (with `state`),
        `network_idle` or `document_idle`. Raises SessionTimeoutError after `timeout_ms`.
        """
        full = {"kind": "selector", "selector": condition} if isinstance(condition, str) else condition
        return cast(WaitResult, await self._post("wait", {"condition": full, **request}, options))

    async def observe(self, *, options: CallOptions | None = None, **request: Unpack[ObserveRequest]) -> Observation:
        """Returns a text of the page for an agent, with a `ref` for each element."""
        return cast(Observation, await self._post("observe", request, options))

    async def read(self, *, options: CallOptions | None = None, **request: Unpack[ReadRequest]) -> ReadResult:
        """
        Returns a part of the page as Markdown. `next_offset` is the `offset` of the next part. `markdown()` reads all
        parts.
        """
        return cast(ReadResult, await self._post("read", request, options))

    async def markdown(self, *, options: CallOptions | None = None, **request: Unpack[MarkdownOptions]) -> str:
        """
        Returns the whole page as Markdown, by as many requests as it has parts of 64 KiB. Raises PilothouseError for a
        page of more than 64 parts. A page that changes meanwhile can repeat or lack text.
        """
        parts: list[str] = []
        offset = 0
        while len(parts) < _MAX_PARTS:
            body = {**request, "offset": offset, "max_bytes": _PART_BYTES}
            part = cast(ReadResult, await self._post("read", body, options))
            parts.append(part["markdown"])
            if "next_offset" not in part:
                return "".join(parts)
            offset = part["next_offset"]
        raise PilothouseError(f"expected a page of at most {_MAX_PARTS} parts of Markdown: read the parts by read()")

    async def screenshot(self, *, options: CallOptions | None = None, **request: Unpack[ScreenshotOptions]) -> bytes:
        """Returns a picture of the page, by default of the viewport as PNG."""
        return await self._capture({"kind": "screenshot", **request}, options)

    async def pdf(self, *, options: CallOptions | None = None, **request: Unpack[PdfOptions]) -> bytes:
        """Returns the page as a PDF."""
        return await self._capture({"kind": "pdf", **request}, options)

    async def state(self, *, options: CallOptions | None = None) -> SessionState:
        """Returns the current state: pages, dialogs, downloads, control and others."""
        return cast(SessionState, await self._transport.json("GET", f"{self._path}/state", None, options))

    async def events(self, *, after_event_id: str | None = None) -> AsyncGenerator[ServiceEvent]:
        """
        Iterates over the events of the session, from now on or after an event, until the session ends. Reconnects after
        the last received event if the connection breaks.
        """
        source = StreamSource(self._transport, f"{self._path}/events", _LAST_EVENTS)
        async with aclosing(await open_events(source, after_event_id)) as events:
            async for event in events:
                yield event

    async def live_url(self, *, options: CallOptions | None = None, **request: Unpack[CreateViewLinkRequest]) -> str:
        """Creates a link at which a person watches the session, and with `control` also controls it."""
        link = await self._post("view-links", request, options)
        return cast(str, link["url"])

    async def cdp_url(self, *, options: CallOptions | None = None) -> str:
        """Creates a URL for clients of the Chrome DevTools Protocol. It contains a token of this session."""
        created = await self._post("cdp-url", {}, options)
        return cast(str, created["url"])

    @asynccontextmanager
    async def playwright(self, *, options: CallOptions | None = None) -> AsyncGenerator[Browser]:
        """
        Connects Playwright, which must be installed, and returns a context manager with its browser. The end of the
        block ends the connection, and the session continues.
        """
        from playwright.async_api import async_playwright

        url = await self.cdp_url(options=options)
        async with async_playwright() as playwright:
            browser = await playwright.chromium.connect_over_cdp(url)
            try:
                yield browser
            finally:
                await browser.close()

    async def end(self, *, options: CallOptions | None = None) -> None:
        """Ends the session. Has no effect on one that has ended."""
        try:
            await self._transport.json("DELETE", self._path, None, options)
        except PilothouseResponseError as error:
            if error.slug != "session-destroyed":
                raise

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, _type: object, error: BaseException | None, _trace: object) -> None:
        try:
            with protected():
                await self.end()
        except PilothouseError as failure:
            if error is None:
                raise
            add_note(error, f"the session {self.id} was not ended: {failure}")

    def __repr__(self) -> str:
        return f"{type(self).__name__}(id={self.id!r})"

    async def _act(self, kind: str, given: dict[str, Any], options: Any, call: CallOptions | None) -> InteractResult:
        return cast(InteractResult, await self._post("interact", split_options(kind, given, options), call))

    async def _capture(self, request: dict[str, Any], options: CallOptions | None) -> bytes:
        captured = await self._post("capture", request, options)
        return base64.b64decode(captured["data"], validate=True)

    async def _post(self, command: str, body: object, options: CallOptions | None) -> Any:
        return await self._transport.json("POST", f"{self._path}/{command}", body, options)
