"""Writes the error classes of a document, and the synchronous half of the package. Arguments: document, package."""

import json
import sys
import textwrap
from pathlib import Path

import unasync

# Names of the asynchronous half with their counterparts, beside those that unasync knows.
SYNC_NAMES = {
    "AsyncAgents": "Agents",
    "AsyncBrowserSession": "BrowserSession",
    "AsyncClient": "Client",
    "AsyncPageTools": "PageTools",
    "AsyncPilothouse": "Pilothouse",
    "AsyncSessionFiles": "SessionFiles",
    "AsyncSessions": "Sessions",
    "AsyncTransport": "Transport",
    "AsyncGenerator": "Generator",
    "_async_runtime": "_sync_runtime",
    "aclose": "close",
    "aclosing": "closing",
    "aiter_bytes": "iter_bytes",
    "async_api": "sync_api",
    "async_playwright": "sync_playwright",
    "asynccontextmanager": "contextmanager",
}

HEADER = '''"""Errors by slug. Generated from the OpenAPI document."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._errors import PilothouseResponseError

if TYPE_CHECKING:
    from . import models
'''

# The base class has the property. Each class narrows its type, which costs nothing at run time.
PROBLEM = """

if TYPE_CHECKING:

    @property
    def problem(self) -> models.{name}: ...
"""


def describe_errors(schemas: dict[str, dict]) -> str:
    """Returns a module with a class for each problem. A class has the type of its problem document."""
    classes: list[str] = []
    slugs: dict[str, str] = {}
    for name, schema in sorted(schemas.items()):
        if not name.startswith("Problem") or name == "Problem":
            continue
        error = f"{name.removeprefix('Problem').removesuffix('Error')}Error"
        slugs[schema["properties"]["type"]["const"].rsplit("/", 1)[1]] = error
        text = textwrap.fill(f'"""{schema.get("description", "").strip()}"""', 110, break_long_words=False)
        body = textwrap.indent(text + PROBLEM.format(name=name), "    ")
        classes.append(f"class {error}(PilothouseResponseError):\n{body}")
    entries = "".join(f'    "{slug}": {error},\n' for slug, error in slugs.items())
    names = "".join(f'    "{error}",\n' for error in slugs.values())
    registered = f"PilothouseResponseError.classes.update({{\n{entries}}})\n"
    return "\n\n".join([f"{HEADER}\n__all__ = [\n{names}]\n", *classes, registered])


def main() -> None:
    document, package = Path(sys.argv[1]), Path(sys.argv[2])
    schemas = json.loads(document.read_text())["components"]["schemas"]
    generated = package / "_gen"
    (generated / "__init__.py").write_text("")
    (generated / "errors.py").write_text(describe_errors(schemas))
    rule = unasync.Rule(fromdir="/_async/", todir="/_sync/", additional_replacements=SYNC_NAMES)
    unasync.unasync_files([str(path) for path in (package / "_async").glob("*.py")], [rule])


main()
