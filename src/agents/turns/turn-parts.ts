import type { BundledLlmConfig } from "../../platform/llm-config.ts";
import type { Tx } from "../../platform/postgres/database.ts";
import type { Sealer } from "../../platform/secrets/secrets-sealer.ts";
import type { SessionCaller } from "../../sessions/commands/session-caller.ts";
import type { Sessions } from "../../sessions/sessions.ts";
import type { Models } from "../llm/models.ts";
import type { ModelConversation } from "./model-conversation.ts";
import type { Page } from "./page.ts";
import type { readAgentOfTurn, TurnRow } from "./store.ts";
import type { TurnEndParts } from "./turn-end.ts";

export interface TurnParts extends TurnEndParts {
  readonly sealer: Sealer;
  readonly sessions: Sessions;
  readonly models: Models;
  readonly config: TurnEndParts["config"] & { readonly bundledLlm: BundledLlmConfig | undefined };
}

export type RunAgent = NonNullable<Awaited<ReturnType<typeof readAgentOfTurn>>>;

/** State of one run of a turn. A run on another gateway resumes at the last commit. */
export interface Run {
  readonly signal: AbortSignal;
  /** LLM key of the request header, if that key pays for the turn. */
  readonly header: string | undefined;
  readonly page: Page;
  /** Caller of session commands, with the step identifier if given. */
  caller(stepId?: string): SessionCaller;
  /** Runs a transaction on the turn, which is locked. Throws `TurnEnded` if the turn has ended. */
  write(run: (tx: Tx, turn: TurnRow) => Promise<TurnRow>): Promise<TurnRow>;
  /**
   * Starts a transaction without waiting for its commit. Later transactions of the run wait for this transaction. If
   * this transaction fails, the run is aborted.
   */
  writeBehind(run: (tx: Tx, turn: TurnRow) => Promise<TurnRow>): void;
  /** Settings of the agent session. */
  readonly agent: RunAgent;
  /** Reads the conversation. Each message that has a position is read and decrypted once in a run. */
  conversation(): Promise<ModelConversation>;
  /** Frees the memory of the conversation. */
  dropConversation(): void;
  /** Caches the conversation for the next turn. Must be called after the last step of the run. */
  cacheConversation(): Promise<void>;
  /** Returns the milliseconds since the previous call, and restarts the count. */
  takeElapsedMs(): number;
}
