"""Fetched pages."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from ._gen.models import FetchedPage


def decode_page(page: dict[str, Any]) -> FetchedPage:
    """Returns a fetched page with its screenshot and PDF as bytes."""
    decoded = {name: base64.b64decode(page[name], validate=True) for name in ("screenshot", "pdf") if name in page}
    return cast("FetchedPage", {**page, **decoded})
