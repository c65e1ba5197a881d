import type { JsonObject } from "@bufbuild/protobuf";
import type { ColumnType, Generated, JSONColumnType } from "kysely";
import type { Migrations } from "../../platform/postgres/schema.ts";
import type { StoredTurnLimits } from "../sessions/tables.ts";

/** Status of a turn, named as in the API. */
export type StoredTurnStatus =
  | "queued"
  | "running"
  | "waiting_for_person"
  | "done"
  | "failed"
  | "cancelled"
  | "limit_reached";

/**
 * Source of a turn's LLM credential: the request header, the account (`byok`) or the operator (`bundled`). `none` while
 * a recipe runs without a model.
 */
export type CredentialSource = "header" | "byok" | "bundled" | "none";

export interface RecipeProgress {
  /** Index of the next or failed step. */
  readonly step: number;
  /** Number of retries so far; part of the call identifier, so that the worker runs each retry as a new step. */
  readonly attempt: number;
  /** Whether the step failed and the model must repair it. */
  readonly isBroken: boolean;
}

/** Turns. Every writer, except for heartbeats, locks the row first and checks that the turn has not ended. */
export interface AgentTurnsTable {
  id: string;
  agent_session_id: string;
  account_id: string;
  session_id: string;
  status: StoredTurnStatus;
  reason: string | null;
  answer: string | null;
  /** Problem document, as in REST. */
  error: JSONColumnType<object> | null;
  credential: CredentialSource;
  /** Model name of the provider; empty, like `provider`, if `credential` is `none`. */
  model: string;
  provider: string;
  limits: JSONColumnType<StoredTurnLimits, string, string>;
  /** Null if the turn has no recipe or has completed it. */
  recipe: JSONColumnType<RecipeProgress, string | undefined, string | null> | null;
  /** The recipe with its parameters filled in, encrypted; deleted when the turn ends. */
  recipe_plan: ColumnType<Buffer | null, Buffer | undefined, null>;
  /** JSON Schema requested for the result. */
  output_schema: JSONColumnType<JsonObject, string | null | undefined, never> | null;
  /**
   * The schema with its keys in the order of the request; null without a schema, and for turns of releases before
   * 0.4.0.
   */
  ordered_schema: JSONColumnType<JsonObject, string | null | undefined, never> | null;
  /** Result that matches the schema. */
  output: JSONColumnType<JsonObject, undefined, string> | null;
  /** Number of results that did not match the schema. */
  misfits: Generated<number>;
  steps: Generated<number>;
  tokens: Generated<string>;
  /** Millionths of a US dollar; null if the price of the model is unknown or no model is used. */
  cost: string | null;
  /** Milliseconds of work, excluding waits for a person. */
  worked_ms: Generated<string>;
  /** Milliseconds of `worked_ms` spent in model calls. */
  model_ms: Generated<string>;
  /** Milliseconds of `worked_ms` in which the page settled after actions. */
  settling_ms: Generated<string>;
  /** Milliseconds of the completed waits for a person. */
  waiting_ms: Generated<string>;
  /** Start of the present wait for a person. */
  waiting_since: ColumnType<Date | null, undefined, Date | null>;
  /** Version of the prompts; null until the first model call. */
  prompt_version: ColumnType<number | null, undefined, number>;
  /** Whether the model accepts pictures. */
  vision: Generated<boolean>;
  /** Control epoch of the browser session as last reported to the model. */
  control_epoch: string | null;
  /** Deadline of a wait that the model requested with `ask_person`; null otherwise. */
  waits_until: Date | null;
  /** Last heartbeat of the gateway that holds the key of the request header; null without such a key. */
  beat_at: Date | null;
  created_at: Date;
  ended_at: ColumnType<Date | null, undefined, Date>;
}

/** Messages of the conversations with the model. `sealed` is the encrypted message. */
interface AgentMessagesTable {
  id: Generated<string>;
  agent_session_id: string;
  turn_id: string;
  /** Position in the conversation; null until the model's next step reads the message. */
  position: number | null;
  sealed: Buffer;
}

/** Summaries of conversations, encrypted. A summary replaces the older part of the messages up to `position`. */
interface AgentSummariesTable {
  agent_session_id: string;
  position: number;
  turn_id: string;
  sealed: Buffer;
}

/** Tool calls and recipe steps that have started. */
interface AgentActionsTable {
  /** Also the identifier of the transcript entry and of the worker's step. */
  id: string;
  turn_id: string;
  call_id: string;
}

declare module "../../platform/postgres/schema.ts" {
  interface Schema {
    agent_turns: AgentTurnsTable;
    agent_messages: AgentMessagesTable;
    agent_summaries: AgentSummariesTable;
    agent_actions: AgentActionsTable;
  }
}

export const turnMigrations: Migrations = {
  "029-agent-turns": [
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
      recipe jsonb,
      recipe_plan bytea,
      output_schema jsonb,
      output jsonb,
      misfits integer not null default 0,
      steps integer not null default 0,
      tokens bigint not null default 0,
      cost bigint,
      worked_ms bigint not null default 0,
      model_ms bigint not null default 0,
      settling_ms bigint not null default 0,
      waiting_ms bigint not null default 0,
      waiting_since timestamptz,
      prompt_version integer,
      vision boolean not null default false,
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
    `create table agent_summaries (
      agent_session_id text not null references agent_sessions (id) on delete cascade,
      position integer not null,
      turn_id text not null references agent_turns (id) on delete cascade,
      sealed bytea not null,
      primary key (agent_session_id, position)
    )`,
  ],
  "172-ordered-schema": ["alter table agent_turns add column ordered_schema json"],
};
