import { PilothouseError } from "./errors.ts";
import { openEvents } from "./event-stream.ts";
import type {
  AgentSession,
  CreateAgentSessionRequest,
  ServiceEvent,
  TranscriptEntry,
  Turn,
  ViewLink,
} from "./gen/schema.ts";
import type { CallOptions, Transport } from "./transport.ts";

/** Request of an agent to a person. */
export interface PersonRequest {
  readonly agentSessionId: string;
  readonly sessionId: string;
  readonly instructions: string;
  /** Time at which the agent stops waiting. */
  readonly timeoutAt: Date;
  /** Link at which the person controls the session, and hands it back. */
  readonly liveUrl: string;
}

/** Options of a run of an agent. */
export interface AgentOptions extends Pick<CallOptions, "signal"> {
  /** JSON Schema of an object that the run returns as `output`. */
  readonly schema?: object;
  /** Browser session to use. It continues after the run. Default: a new one that ends with the run. */
  readonly sessionId?: string;
  /** Other options of the agent session, such as `model`, `instructions`, `variables` or `limits`. */
  readonly session?: Omit<CreateAgentSessionRequest, "session_id">;
  /** LLM key for this run only. Default: the key or the consent of the account. */
  readonly llmKey?: string;
  /**
   * Called with each new entry of the transcript, such as a message, an action or a result, in their order. The next
   * event is read when the promise of the callback has resolved; the agent does not wait. If a callback throws, the task is
   * cancelled, and the run rejects with its error.
   */
  readonly onStep?: (entry: TranscriptEntry) => void | Promise<void>;
  /**
   * Called when the agent needs a person, such as for a second factor. The agent waits until the person hands back at
   * `liveUrl`, or until `timeoutAt`. Return as soon as the person is informed: until then, no other callback is called. If
   * the callback throws, the task is cancelled, and the run rejects with its error.
   */
  readonly onPersonNeeded?: (request: PersonRequest) => void | Promise<void>;
}

/** Sessions of a run. */
export interface AgentRunIds {
  /** Agent session, which has the transcript. */
  readonly agentSessionId: string;
  /** Browser session, which has the log and, if it was created for the run, has ended. */
  readonly sessionId: string;
}

/** Result of a run. */
export interface AgentResult<Output> extends AgentRunIds {
  /** Answer of the agent. */
  readonly text: string;
  /** Object that matches `schema`. Undefined without a schema. */
  readonly output: Output;
  readonly turn: Turn;
}

/** Thrown for a run that ended without an answer: `turn.status` is `failed`, `cancelled` or `limit_reached`. */
export class AgentRunError extends PilothouseError {
  override readonly name = "AgentRunError";
  readonly turn: Turn;
  readonly agentSessionId: string;
  readonly sessionId: string;

  constructor(turn: Turn, { agentSessionId, sessionId }: AgentRunIds) {
    super(`the run ended as ${turn.status}: ${turn.error?.detail ?? turn.reason ?? turn.error?.title ?? "no reason"}`);
    this.turn = turn;
    this.agentSessionId = agentSessionId;
    this.sessionId = sessionId;
  }
}

/** Longest wait of a request for the end of a turn. */
const waitMs = 60_000;
const ended: ReadonlySet<string> = new Set(["done", "failed", "cancelled", "limit_reached"]);
const lastEvents: ReadonlySet<string> = new Set(["agent_session.ended", "session.completed", "session.failed"]);

/** Agents, which do tasks in browser sessions. */
export class Agents {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /**
   * Runs a task to its end, and returns the answer. An abort of `signal` cancels the task. Throws AgentRunError if the
   * agent does not answer. Entries of the transcript and requests to a person are passed to the callbacks one at a time.
   */
  async run<Output = unknown>(task: string, options: AgentOptions = {}): Promise<AgentResult<Output>> {
    const { signal, session = {}, sessionId } = options;
    const call = signal ? { signal } : {};
    const body = { ...session, ...(sessionId !== undefined && { session_id: sessionId }) };
    const agent: AgentSession = await this.#transport.json("POST", "/v1/agent-sessions", { body }, call);
    const path = `/v1/agent-sessions/${agent.id}`;
    const ids = { agentSessionId: agent.id, sessionId: agent.session_id };
    try {
      const turn = await this.#runTurn(path, task, options);
      if (turn.status !== "done") throw new AgentRunError(turn, ids);
      // The service has validated the output against the schema.
      return { text: turn.text ?? "", output: turn.output as Output, turn, ...ids };
    } finally {
      // Ends the turn, too. An error here would hide the result.
      await this.#transport.json("DELETE", path).catch(() => undefined);
    }
  }

  async #runTurn(path: string, task: string, options: AgentOptions): Promise<Turn> {
    const { signal, schema, llmKey } = options;
    const call = signal ? { signal } : {};
    let turnPath = "";
    const source = {
      transport: this.#transport,
      path: `${path}/events`,
      last: lastEvents,
      hasEnded: async () => ended.has((await this.#transport.json<Turn>("GET", turnPath, {}, call)).status),
    };
    // The stream is open before the turn begins, so that it has all events of the turn.
    const events = await openEvents(source, call);
    try {
      const body = { text: task, ...(schema && { output_schema: schema }) };
      const headers: Record<string, string> = llmKey === undefined ? {} : { "x-byok-llm-api-key": llmKey };
      const { turn_id }: Turn = await this.#transport.json("POST", `${path}/message`, { body }, { ...call, headers });
      turnPath = `${path}/turns/${turn_id}`;
      for await (const event of events) {
        if (event.type === "agent_session.turn_ended" && event.data.turn.turn_id === turn_id) return event.data.turn;
        await this.#report(event, options);
      }
      return await this.#awaitTurn(turnPath, call);
    } finally {
      await events.return(undefined);
    }
  }

  async #report(event: ServiceEvent, { onStep, onPersonNeeded }: AgentOptions): Promise<void> {
    if (event.type === "agent_session.transcript_entry_added") await onStep?.(event.data.entry);
    if (event.type !== "agent_session.person_needed" || !onPersonNeeded) return;
    const { agent_session_id, session_id, instructions, timeout_at } = event.data;
    const links = `/v1/sessions/${session_id}/view-links`;
    const { url = "" }: ViewLink = await this.#transport.json("POST", links, { body: { control: true } });
    const times = { timeoutAt: new Date(timeout_at), liveUrl: url };
    await onPersonNeeded({ agentSessionId: agent_session_id, sessionId: session_id, instructions, ...times });
  }

  /** Waits for the end of a turn after its event stream has ended. */
  async #awaitTurn(path: string, call: CallOptions): Promise<Turn> {
    for (;;) {
      const options = { ...call, timeoutMs: 2 * waitMs };
      const turn: Turn = await this.#transport.json("GET", path, { query: { wait_ms: waitMs } }, options);
      if (ended.has(turn.status)) return turn;
    }
  }
}
