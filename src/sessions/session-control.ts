import { create } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { type Control, ControlSchema } from "../gen/pilothouse/v1/session_pb.ts";
import type { SessionRow } from "./store.ts";

type ControlColumns = Pick<SessionRow, "agent_session_id" | "control_holder" | "control_epoch" | "control_lapses_at">;

/** Control state, as named in the API. */
export function controlState({ control_holder, agent_session_id }: ControlColumns): string {
  if (control_holder !== null) return "human_control";
  return agent_session_id === null ? "api" : "agent_control";
}

export function toControlMessage(row: ControlColumns): Control {
  return create(ControlSchema, {
    state: controlState(row),
    controlEpoch: Number(row.control_epoch),
    ...(row.control_holder !== null && { holderClientId: row.control_holder }),
    ...(row.control_lapses_at && { lapsesAt: timestampFromDate(row.control_lapses_at) }),
  });
}
