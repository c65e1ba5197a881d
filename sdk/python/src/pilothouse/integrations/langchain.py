"""Sessions as tools of LangChain agents."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._async.page_tools import AsyncPageTools
from .._async.session import AsyncBrowserSession
from .._sync.page_tools import PageTools
from .._sync.session import BrowserSession

if TYPE_CHECKING:
    from langchain_core.tools import BaseTool


def create_tools(session: AsyncBrowserSession | BrowserSession) -> list[BaseTool]:
    """
    Returns tools by which a LangChain agent drives a session: `navigate`, `observe`, `tap`, `fill`, `press` and `read`.
    Tools of an asynchronous session are asynchronous. An error of the service is the result of its tool.
    """
    from langchain_core.tools import StructuredTool

    if isinstance(session, BrowserSession):
        functions = PageTools(session).functions()
        return [StructuredTool.from_function(func=function, name=function.__name__) for function in functions]
    functions = AsyncPageTools(session).functions()
    return [StructuredTool.from_function(coroutine=function, name=function.__name__) for function in functions]
