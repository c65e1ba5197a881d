import type { JsonObject } from "@bufbuild/protobuf";
import type { ColumnType, Generated, JSONColumnType } from "kysely";
import type { Migrations } from "../../platform/postgres/schema.ts";
import type { StoredTurnLimits } from "../sessions/tables.ts";

/** Where a turn is, as the interface names it. */
export type StoredTurnStatus =
  | "queued"
  | "running"
  | "waiting_for_person"
  | "done"
  | "failed"
  | "cancelled"
  | "limit_reached";

/**
 * What pays for a turn: the key of its request's header, the account's own, or the operator's; `none` for one that runs a
 * recipe, for as long as it needs no model.
 */
export type CredentialSource = "header" | "byok" | "bundled" | "none";

/** How far a turn is with its recipe. */
export interface RecipeProgress {
  /** Index of the step that comes next, or that has failed. */
  readonly step: number;
  /** Counts what was begun more than once: each time it is another step for the worker. */
  readonly attempt: number;
  /** The step has failed, and the model is to mend it. */
  readonly isBroken: boolean;
}

/** Turns. Whoever writes anything of a turn has locked its row, and found that it has not ended. */
export interface AgentTurnsTable {
  id: string;
  agent_session_id: string;
  account_id: string;
  session_id: string;
  status: StoredTurnStatus;
  reason: string | null;
  answer: string | null;
  /** A problem in the JSON of REST. */
  error: JSONColumnType<object> | null;
  credential: CredentialSource;
  /** As the provider names it. */
  model: string;
  provider: string;
  limits: JSONColumnType<StoredTurnLimits, string, string>;
  /** Null for a turn without a recipe, or that is through with it. */
  recipe: JSONColumnType<RecipeProgress, string | undefined, string | null> | null;
  /** The recipe with its places filled, sealed, until the turn has ended. */
  recipe_plan: ColumnType<Buffer | null, Buffer | undefined, null>;
  /** What its result is to fit, as its message has said, and the result. */
  output_schema: JSONColumnType<JsonObject, string | null | undefined, never> | null;
  output: JSONColumnType<JsonObject, undefined, string> | null;
  /** How many results did not fit. */
  misfits: Generated<number>;
  steps: Generated<number>;
  tokens: Generated<string>;
  /** In millionths of a US dollar; null where the price of the model is not known. */
  cost: string | null;
  /** Milliseconds of work, without those in which it waited for a person. */
  worked_ms: Generated<string>;
  /** The control epoch of the browser session that the model knows of. */
  control_epoch: string | null;
  /** Until when a person is waited for. */
  waits_until: Date | null;
  /** When the gateway was last heard of that has the key of the header. */
  beat_at: Date | null;
  created_at: Date;
  ended_at: ColumnType<Date | null, undefined, Date>;
}

/** What the model has been told and has answered, sealed. */
interface AgentMessagesTable {
  id: Generated<string>;
  agent_session_id: string;
  turn_id: string;
  /** Its place in the conversation; null until the model's next step reads it. */
  position: number | null;
  sealed: Buffer;
}

/** Calls of tools that have begun. */
interface AgentActionsTable {
  /** Also that of its entry of the transcript, and of the step that the worker remembers. */
  id: string;
  turn_id: string;
  call_id: string;
}

declare module "../../platform/postgres/schema.ts" {
  interface Schema {
    agent_turns: AgentTurnsTable;
    agent_messages: AgentMessagesTable;
    agent_actions: AgentActionsTable;
  }
}

export const turnMigrations: Migrations = {
  "082-agent-turns": [
    `create table agent_turns (
      id text primary key,
      agent_session_id text not null references agent_sessions (id) on delete cascade,
      account_id text not null references accounts (id),
      session_id text not null,
      status text not null,
      reason text,
      answer text,
      error jsonb,
      credential text not null,
      model text not null,
      provider text not null,
      limits jsonb not null,
      steps integer not null default 0,
      tokens bigint not null default 0,
      worked_ms bigint not null default 0,
      control_epoch bigint,
      waits_until timestamptz,
      beat_at timestamptz,
      created_at timestamptz not null,
      ended_at timestamptz
    )`,
    "create unique index agent_turns_running on agent_turns (agent_session_id) where ended_at is null",
    "create index agent_turns_session on agent_turns (agent_session_id)",
    "create index agent_turns_held on agent_turns (beat_at) where ended_at is null and beat_at is not null",
    `create table agent_messages (
      id bigint generated always as identity primary key,
      agent_session_id text not null references agent_sessions (id) on delete cascade,
      turn_id text not null references agent_turns (id) on delete cascade,
      position integer,
      sealed bytea not null,
      unique (agent_session_id, position)
    )`,
    `create table agent_actions (
      id text primary key,
      turn_id text not null references agent_turns (id) on delete cascade,
      call_id text not null,
      unique (turn_id, call_id)
    )`,
  ],
  "089-agent-costs": ["alter table agent_turns add column cost bigint"],
  "091-recipe-turns": ["alter table agent_turns add column recipe jsonb, add column recipe_plan bytea"],
  "093-turn-outputs": [
    "alter table agent_turns add column output_schema jsonb, add column output jsonb, add column misfits integer not null default 0",
  ],
};
