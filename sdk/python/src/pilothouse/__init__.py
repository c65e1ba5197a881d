"""Client of Pilothouse, a remote browser that programs, agents and people can share."""

from pkgutil import extend_path

from . import errors, types, webhooks
from ._agents import AgentResult, AgentRunError, PersonRequest
from ._async.agents import AsyncAgents
from ._async.client import AsyncPilothouse
from ._async.files import AsyncSessionFiles
from ._async.session import AsyncBrowserSession
from ._async.sessions import AsyncSessions
from ._errors import (
    PilothouseConnectionError,
    PilothouseError,
    PilothouseResponseError,
    PilothouseTimeoutError,
)
from ._gen.models import (
    AgentSessionOptions,
    CreateSessionRequest,
    FetchedPage,
    InteractResult,
    NavigateResult,
    Observation,
    ReadResult,
    ServiceEvent,
    Session,
    SessionFile,
    SessionLogEntry,
    SessionState,
    SessionStatus,
    TranscriptEntry,
    Turn,
    WaitCondition,
    WaitResult,
)
from ._options import CallOptions, LogEntry
from ._sync.agents import Agents
from ._sync.client import Pilothouse
from ._sync.files import SessionFiles
from ._sync.session import BrowserSession
from ._sync.sessions import Sessions

# protoc generates modules below `pilothouse.v1` from the contract. They can be imported beside this package.
__path__ = extend_path(__path__, __name__)

__all__ = [
    "AgentResult",
    "AgentRunError",
    "AgentSessionOptions",
    "Agents",
    "AsyncAgents",
    "AsyncBrowserSession",
    "AsyncPilothouse",
    "AsyncSessionFiles",
    "AsyncSessions",
    "BrowserSession",
    "CallOptions",
    "CreateSessionRequest",
    "FetchedPage",
    "InteractResult",
    "LogEntry",
    "NavigateResult",
    "Observation",
    "PersonRequest",
    "Pilothouse",
    "PilothouseConnectionError",
    "PilothouseError",
    "PilothouseResponseError",
    "PilothouseTimeoutError",
    "ReadResult",
    "ServiceEvent",
    "Session",
    "SessionFile",
    "SessionFiles",
    "SessionLogEntry",
    "SessionState",
    "SessionStatus",
    "Sessions",
    "TranscriptEntry",
    "Turn",
    "WaitCondition",
    "WaitResult",
    "errors",
    "types",
    "webhooks",
]
