"""Sends 250 key events a second over gRPC: PYTHONPATH=../../proto python stream_input.py https://example.com/"""

import os
import sys
import time
from collections.abc import Iterator
from typing import Any

import grpc
from pilothouse import Pilothouse

PER_SECOND, TOTAL = 250, 1000
ADDRESS = os.environ.get("GRPC_ADDRESS", "localhost:8081")
# Compiles the contract, which it finds on PYTHONPATH.
messages, services = grpc.protos_and_services("pilothouse/v1/agent_input.proto")


def create_requests(agent_id: str) -> Iterator[Any]:
    began = time.monotonic()
    for sent in range(TOTAL):
        time.sleep(max(0.0, began + sent / PER_SECOND - time.monotonic()))
        key = {"key_down": {"key": "a"}} if sent % 2 == 0 else {"key_up": {"key": "a"}}
        fields = {"agent_session_id": agent_id, "client_id": "example", "sequence": sent + 1}
        yield messages.StreamInputRequest(**fields, events=[messages.InputEvent(**key)])


client = Pilothouse()
agent = client.request("POST", "/v1/agent-sessions", {})
with client.sessions.get(agent["session_id"]) as session, grpc.insecure_channel(ADDRESS) as channel:
    session.goto(sys.argv[1])
    client.request("POST", f"/v1/agent-sessions/{agent['id']}/takeover", {"client_id": "example"})
    metadata = [("authorization", f"Bearer {os.environ['PILOTHOUSE_API_KEY']}")]
    began, accepted = time.monotonic(), 0
    stub = services.AgentInputServiceStub(channel)
    for response in stub.StreamInput(create_requests(agent["id"]), metadata=metadata):
        accepted = response.acknowledgement.accepted or accepted
    print(f"{accepted} events in {round(1000 * (time.monotonic() - began))} ms")
