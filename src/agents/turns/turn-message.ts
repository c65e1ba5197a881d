import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { type Turn, TurnSchema, TurnStatus } from "../../gen/pilothouse/v1/agent_turn_pb.ts";
import { ProblemSchema } from "../../gen/pilothouse/v1/common_pb.ts";
import { inSchemaOrder } from "./output-order.ts";
import type { NewTurn, TurnRow } from "./store.ts";
import type { StoredTurnStatus } from "./tables.ts";

const statuses: Readonly<Record<StoredTurnStatus, TurnStatus>> = {
  queued: TurnStatus.QUEUED,
  running: TurnStatus.RUNNING,
  waiting_for_person: TurnStatus.WAITING_FOR_PERSON,
  done: TurnStatus.DONE,
  failed: TurnStatus.FAILED,
  cancelled: TurnStatus.CANCELLED,
  limit_reached: TurnStatus.LIMIT_REACHED,
};

const microsPerCent = 10_000;

/** Usage of a turn so far: tokens, and the cost if the price is known. */
export const usageOf = ({ tokens, cost }: Pick<TurnRow, "tokens" | "cost">) => ({
  tokens: Number(tokens),
  ...(cost !== null && { costCents: Math.ceil(Number(cost) / microsPerCent) }),
});

/** Returns the changes that end a turn's wait for a person, if the turn waits. */
export const afterWait = ({ waiting_since: since, waiting_ms: before }: TurnRow, now: number) =>
  since && { waiting_since: null, waiting_ms: String(Number(before) + Math.max(0, now - since.getTime())) };

export function toTurnMessage(row: NewTurn | TurnRow): Turn {
  return create(TurnSchema, {
    turnId: row.id,
    status: statuses[row.status],
    steps: row.steps,
    modelMs: Number(row.model_ms),
    settlingMs: Number(row.settling_ms),
    waitingMs: Number(row.waiting_ms),
    workedMs: Number(row.worked_ms),
    ...usageOf(row),
    ...(row.answer !== null && { text: row.answer }),
    ...(row.output !== null && { output: inSchemaOrder(row.ordered_schema ?? {}, row.output) }),
    ...(row.reason !== null && { reason: row.reason }),
    // Cast: the column holds only problems that the service has stored.
    ...(row.error !== null && { error: create(ProblemSchema, row.error as MessageInitShape<typeof ProblemSchema>) }),
  });
}
