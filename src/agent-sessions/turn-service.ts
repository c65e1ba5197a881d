import { create } from "@bufbuild/protobuf";
import { type AgentTurnService, GetTranscriptResponseSchema } from "../gen/pilothouse/v1/agent_turn_pb.ts";
import { fail } from "../platform/errors.ts";
import type { Database } from "../platform/postgres/database.ts";
import type { ServiceImplementation } from "../registry.ts";
import { findAny, findRunning } from "./agent-sessions.ts";

/** Makes the implementation of AgentTurnService in a deployment without agents: no turn was ever begun. */
export function createAgentTurnService({
  db,
}: {
  readonly db: Database;
}): ServiceImplementation<typeof AgentTurnService> {
  return {
    async sendMessage(call, { id }) {
      await findRunning(db, call, id);
      throw fail(
        "byok-llm-required",
        {},
        { detail: "this deployment has no agents that a credential could be used for" },
      );
    },
    async cancelTurn(call, { id }) {
      await findRunning(db, call, id);
      throw fail("not-found", {}, { detail: "the agent session has no turn of this id" });
    },
    async getTranscript(call, { id }) {
      await findAny(db, call, id);
      return create(GetTranscriptResponseSchema);
    },
    async getStepScreenshot(call, { id }) {
      await findAny(db, call, id);
      throw fail("not-found", {}, { detail: "the agent session has no step of this id" });
    },
  };
}
