"""Sessions for agents of browser-use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._async.session import AsyncBrowserSession

if TYPE_CHECKING:
    from browser_use import Browser


async def connect(session: AsyncBrowserSession, **options: Any) -> Browser:
    """
    Returns a browser for `browser_use.Agent(browser=...)` that drives a session. `options` are those of
    `browser_use.Browser`.
    """
    from browser_use import Browser

    return Browser(cdp_url=await session.cdp_url(), **options)
