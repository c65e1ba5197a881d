"""Types of agent runs, which both halves of the package share."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from ._errors import PilothouseError

if TYPE_CHECKING:
    from ._gen.models import Turn


@dataclass(frozen=True)
class PersonRequest:
    """Request of an agent to a person."""

    agent_session_id: str
    session_id: str
    instructions: str
    timeout_at: datetime
    """Time at which the agent stops waiting."""
    live_url: str = field(repr=False)
    """Link at which the person controls the session, and hands it back."""


@dataclass(frozen=True)
class AgentResult:
    """Result of a run."""

    text: str
    """Answer of the agent."""
    output: Any
    """Object that matches the schema. None without a schema."""
    turn: Turn
    agent_session_id: str
    """Agent session, which has the transcript."""
    session_id: str
    """Browser session, which has the log and, if it was created for the run, has ended."""


class AgentRunError(PilothouseError):
    """Raised for a run that ended without an answer: `turn["status"]` is `failed`, `cancelled` or `limit_reached`."""

    def __init__(self, turn: Turn, *, agent_session_id: str, session_id: str) -> None:
        self.turn = turn
        self.agent_session_id = agent_session_id
        self.session_id = session_id
        error = turn.get("error")
        reason = (error and (error.get("detail") or error["title"])) or turn.get("reason") or "no reason"
        super().__init__(f"the run ended as {turn['status']}: {reason}")


def parse_time(text: str) -> datetime:
    """Parses a time of the service. Python 3.10 does not know the zone `Z`."""
    return datetime.fromisoformat(text.replace("Z", "+00:00"))
