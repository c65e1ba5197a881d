from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass
from typing import Any, cast

from .._agents import AgentResult, AgentRunError, PersonRequest, parse_time
from .._async_runtime import call, check_callbacks, protected
from .._gen.models import AgentSessionOptions, ServiceEvent, TranscriptEntry, Turn
from .event_stream import StreamSource, open_events
from .transport import AsyncTransport

# Longest wait of a request for the end of a turn, in milliseconds.
_WAIT_MS = 60_000
_ENDED = frozenset({"done", "failed", "cancelled", "limit_reached"})
_LAST_EVENTS = frozenset({"agent_session.ended", "session.completed", "session.failed"})


@dataclass(frozen=True)
class Task:
    """Task of a run, with the functions that receive its progress."""

    text: str
    schema: Mapping[str, Any] | None
    llm_key: str | None
    on_step: Callable[[TranscriptEntry], object] | None
    on_person_needed: Callable[[PersonRequest], object] | None


class AsyncAgents:
    """Agents, which do tasks in browser sessions."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    async def run(
        self,
        task: str,
        *,
        schema: Mapping[str, Any] | None = None,
        session_id: str | None = None,
        session: AgentSessionOptions | None = None,
        llm_key: str | None = None,
        on_step: Callable[[TranscriptEntry], object] | None = None,
        on_person_needed: Callable[[PersonRequest], object] | None = None,
    ) -> AgentResult:
        """
        Runs a task to its end, and returns the answer. Raises AgentRunError if the agent does not answer.

        - `schema`: JSON Schema of an object that the run returns as `output`.
        - `session_id`: browser session to use, which continues after the run. Default: a new one, which ends with it.
        - `session`: other options of the agent session, such as `model`, `instructions`, `variables` or `limits`.
        - `llm_key`: LLM key for this run only. Default: the key or the consent of the account.
        - `on_step` is called with each new entry of the transcript, such as a message, an action or a result, in their
          order. The next event is read when it has returned; the agent does not wait.
        - `on_person_needed` is called when the agent needs a person, such as for a second factor. The agent waits until
          the person hands back at `live_url`, or until `timeout_at`. Return as soon as the person is informed: until
          then, no other callback is called.

        If a callback raises, the task is cancelled, and the run raises the same error. Only AsyncPilothouse accepts
        asynchronous callbacks.
        """
        check_callbacks(on_step, on_person_needed)
        body = {**(session or {}), **({} if session_id is None else {"session_id": session_id})}
        agent = await self._transport.json("POST", "/v1/agent-sessions", body)
        path = f"/v1/agent-sessions/{agent['id']}"
        try:
            turn = await self._run_turn(path, Task(task, schema, llm_key, on_step, on_person_needed))
            if turn["status"] != "done":
                raise AgentRunError(turn, agent_session_id=agent["id"], session_id=agent["session_id"])
            return AgentResult(turn.get("text", ""), turn.get("output"), turn, agent["id"], agent["session_id"])
        finally:
            # Ends the turn, too. An error here would hide the result.
            with protected(), suppress(Exception):
                await self._transport.json("DELETE", path)

    async def _run_turn(self, path: str, task: Task) -> Turn:
        turn_path = ""

        async def has_ended() -> bool:
            turn = await self._transport.json("GET", turn_path)
            return turn["status"] in _ENDED

        source = StreamSource(self._transport, f"{path}/events", _LAST_EVENTS, has_ended)
        # The stream is open before the turn begins, so that it has all events of the turn.
        async with aclosing(await open_events(source)) as events:
            body = {"text": task.text, **({} if task.schema is None else {"output_schema": task.schema})}
            headers = {} if task.llm_key is None else {"x-byok-llm-api-key": task.llm_key}
            started = await self._transport.json("POST", f"{path}/message", body, headers=headers)
            turn_id = started["turn_id"]
            turn_path = f"{path}/turns/{turn_id}"
            event: ServiceEvent
            async for event in events:
                if event["type"] == "agent_session.turn_ended" and event["data"]["turn"]["turn_id"] == turn_id:
                    return event["data"]["turn"]
                await self._report(event, task)
            return await self._await_turn(turn_path)

    async def _report(self, event: ServiceEvent, task: Task) -> None:
        if event["type"] == "agent_session.transcript_entry_added" and task.on_step:
            await call(task.on_step, event["data"]["entry"])
        if event["type"] != "agent_session.person_needed" or not task.on_person_needed:
            return
        data = event["data"]
        links = f"/v1/sessions/{data['session_id']}/view-links"
        link = await self._transport.json("POST", links, {"control": True})
        request = PersonRequest(
            agent_session_id=data["agent_session_id"],
            session_id=data["session_id"],
            instructions=data["instructions"],
            timeout_at=parse_time(data["timeout_at"]),
            live_url=link["url"],
        )
        await call(task.on_person_needed, request)

    async def _await_turn(self, path: str) -> Turn:
        """Waits for the end of a turn whose stream ended before."""
        while True:
            query = {"wait_ms": _WAIT_MS}
            turn = await self._transport.json("GET", path, None, {"timeout": 2 * _WAIT_MS / 1000}, query=query)
            if turn["status"] in _ENDED:
                return cast(Turn, turn)
