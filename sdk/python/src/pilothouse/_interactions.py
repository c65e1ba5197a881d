"""Requests of interactions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# Fields that belong to the interaction and not to its action.
_INTERACT_FIELDS = frozenset({"timeout_ms", "page_id", "while_paused", "next", "observe"})


def split_options(kind: str, given: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the request of an interaction, whose arguments have fields of both the action and the interaction."""
    action = {name: value for name, value in options.items() if name not in _INTERACT_FIELDS}
    request = {name: value for name, value in options.items() if name in _INTERACT_FIELDS}
    present = {name: value for name, value in given.items() if value is not None}
    return {"action": {"kind": kind, **present, **action}, **request}
