import { create, type Message } from "@bufbuild/protobuf";
import type { AgentSession, CreateAgentSessionRequest } from "../../gen/pilothouse/v1/agent_session_pb.ts";
import type { Recipe } from "../../gen/pilothouse/v1/recipe_pb.ts";
import { CreateSessionRequestSchema, OnChallenge } from "../../gen/pilothouse/v1/session_pb.ts";
import type { Call } from "../../kernel/call.ts";
import { defaultDevice } from "../../platform/browsers/archetypes.ts";
import { Failure, fail, failFaults, failFields } from "../../platform/errors.ts";
import { domainFaults, intersectDomains } from "../../platform/outgoing/domain-list.ts";
import type { PlatformParts } from "../../platform/platform-parts.ts";
import type { Tx } from "../../platform/postgres/database.ts";
import type { SessionCreator } from "../../sessions/commands/session-caller.ts";
import type { Controls } from "../../sessions/control/control.ts";
import { defaultIdleTimeoutSeconds } from "../../sessions/launch/session-plan.ts";
import type { Sessions } from "../../sessions/sessions.ts";
import { planRecipe } from "../recipes/plan.ts";
import { toAgentSessionMessage, toStoredLimits, toStoredMode } from "./agent-session-message.ts";
import { type AgentSessionRow, insertAgentSession, type NewAgentSession } from "./store.ts";
import { findVariableFaults, sealVariables } from "./variables.ts";

/** Runtime of agent sessions: the only runtime that supports live view over WebRTC. */
const runtime = "chromium";

/** A turn that runs a recipe. */
export interface NewRecipeTurn {
  readonly id: string;
  readonly recipe: Recipe;
}

export interface CreationParts extends Pick<PlatformParts, "db" | "bus" | "sealer"> {
  readonly turns: {
    /** Inserts a recipe turn, which starts after the commit. */
    beginRecipe(tx: Tx, agent: AgentSessionRow, turn: NewRecipeTurn): Promise<void>;
  };
  readonly sessions: Sessions;
  readonly controls: Controls;
}

/** Fields that configure a new browser, and so cannot be set for a running browser session. */
const browserFields = {
  archetype: "archetype",
  profileId: "profile_id",
  proxy: "proxy",
  timeoutSeconds: "timeout_seconds",
  idleTimeoutSeconds: "idle_timeout_seconds",
  locale: "locale",
  timezone: "timezone",
  viewport: "viewport",
  block: "block",
  geolocation: "geolocation",
  webdriver: "webdriver",
} as const satisfies Partial<Record<keyof CreateAgentSessionRequest, string>>;

/** Generated clients send the documented defaults, so these values count as unset. */
const defaults = {
  archetype: defaultDevice.archetype,
  idleTimeoutSeconds: defaultIdleTimeoutSeconds,
  webdriver: true,
};

/** Throws `validation-failed` for entries that are not host patterns, because such entries would match no host. */
function assertDomains({ allowedDomains }: CreateAgentSessionRequest): void {
  const faults = domainFaults(allowedDomains);
  if (faults.length > 0) throw failFaults("validation-failed", faults);
}

/**
 * Returns the hosts allowed by both the request and the recipe; empty if neither restricts hosts. Throws
 * `validation-failed` if both restrict hosts and have none in common.
 */
function domainsOf({ allowedDomains }: CreateAgentSessionRequest, turn: NewRecipeTurn | undefined): readonly string[] {
  const both = intersectDomains(allowedDomains, turn?.recipe.allowedDomains ?? []);
  if (both) return both;
  throw failFields("validation-failed", {
    allowed_domains: "has no host in common with the allowed_domains of the recipe",
  });
}

/** Throws `validation-failed` if the request configures a new browser. */
function assertNoBrowserFields(request: CreateAgentSessionRequest): void {
  const chosen = Object.entries(browserFields).filter(([key]) => {
    const value: unknown = Reflect.get(request, key);
    return value !== undefined && value !== Reflect.get(defaults, key);
  });
  const faults = Object.fromEntries(
    chosen.map(([, name]) => [name, "configures a new browser: leave it out with session_id"]),
  );
  if (request.allowedDomains.length > 0)
    faults.allowed_domains = "configures a new browser: leave it out with session_id";
  if (request.onChallenge > OnChallenge.PAUSE)
    faults.on_challenge = "configures a new browser: leave it out with session_id";
  if (Object.keys(faults).length > 0) throw failFields("validation-failed", faults);
}

export function createCreation({ db, turns, sessions, controls, bus, sealer }: CreationParts) {
  /** Plans the first turn if the request names a recipe. */
  async function planTurn(call: Call, request: CreateAgentSessionRequest): Promise<NewRecipeTurn | undefined> {
    const { recipeId: id, recipeParameters: values } = request;
    if (id !== undefined) {
      const variables = Object.keys(request.variables);
      const recipe = await planRecipe(db, { id, values, variables, accountId: call.principal.accountId });
      return { id: call.ids.next("trn"), recipe };
    }
    if (Object.keys(values).length === 0) return undefined;
    throw failFields("validation-failed", { recipe_parameters: "requires recipe_id" });
  }

  async function insert(
    tx: Tx,
    call: Call,
    request: CreateAgentSessionRequest,
    session: Pick<NewAgentSession, "id" | "sessionId" | "ownsSession" | "allowedDomains">,
    turn: NewRecipeTurn | undefined,
  ): Promise<AgentSession> {
    const { accountId } = call.principal;
    const { mode, instructions, model, recipeId, labels, limits } = request;
    const row = await insertAgentSession(tx, {
      ...session,
      accountId,
      mode: toStoredMode(mode),
      instructions,
      model,
      recipeId,
      labels,
      limits: limits && toStoredLimits(limits),
      variableNames: Object.keys(request.variables).sort(),
      variables: sealVariables(sealer, accountId, request.variables),
    });
    if (turn) await turns.beginRecipe(tx, row, turn);
    tx.afterCommit(() => bus.publish("session-changed", session.sessionId));
    return toAgentSessionMessage({ ...row, turn_id: turn?.id ?? null });
  }

  /** Launches a browser session; one transaction commits the agent session and makes the browser session live. */
  async function launch(call: Call, request: CreateAgentSessionRequest): Promise<AgentSession> {
    const id = call.ids.next("agt");
    const turn = await planTurn(call, request);
    const allowedDomains = domainsOf(request, turn);
    const own = { id, ownsSession: true, allowedDomains };
    let answer: AgentSession | undefined;
    const creator: SessionCreator = {
      principal: call.principal,
      signal: call.signal,
      deadline: call.deadline,
      requestId: call.requestId,
      traceparent: call.traceparent,
      ids: call.ids,
      resumes: call.resumes,
      charge: () => call.charge(),
      audit: (tx, { subject, data }) => void call.audit(tx, { subject: id, data: { ...data, session_id: subject } }),
      async commit<Answer extends Message>(run: (tx: Tx) => Promise<Answer | Failure>): Promise<Answer> {
        let made: Answer | undefined;
        answer = await call.commit(async (tx) => {
          const outcome = await run(tx);
          if (outcome instanceof Failure) return outcome;
          made = outcome;
          return insert(tx, call, request, { ...own, sessionId: sessionIdOf(outcome) }, turn);
        });
        if (!made) throw new Error("an agent session was committed without its session");
        return made;
      },
    };
    const hosts = { allowedDomains: [...allowedDomains] };
    await sessions.launch(creator, create(CreateSessionRequestSchema, { ...browserOf(request), ...hosts, runtime }));
    if (!answer) throw new Error("a session was launched and not committed");
    return answer;
  }

  /** Adds an agent session to a running browser session. */
  async function attach(call: Call, request: CreateAgentSessionRequest, sessionId: string): Promise<AgentSession> {
    assertNoBrowserFields(request);
    const id = call.ids.next("agt");
    const turn = await planTurn(call, request);
    if (domainsOf(request, turn).length > 0)
      throw failFields("validation-failed", {
        recipe_id: "has allowed_domains, which needs a new browser: leave out session_id",
      });
    return call.commit(async (tx) => {
      const row = await controls.lock(tx, sessionId, call.principal.accountId);
      if (row.status === "provisioning")
        throw fail("conflict", {}, { detail: "the session is being launched: wait until its status is live" });
      if (row.runtime !== runtime) {
        const detail = `expected a session with runtime ${runtime}, got ${row.runtime}: create a session with runtime ${runtime}`;
        throw fail("driver-not-integrated", {}, { detail });
      }
      if (row.agent_session_id !== null) {
        throw fail(
          "conflict",
          {},
          {
            detail: `the agent session ${row.agent_session_id} already drives this session: use it, or delete it first`,
          },
        );
      }
      call.audit(tx, { subject: id, data: { session_id: sessionId } });
      return insert(tx, call, request, { id, sessionId, ownsSession: false, allowedDomains: [] }, turn);
    });
  }

  return async (call: Call, request: CreateAgentSessionRequest): Promise<AgentSession> => {
    assertDomains(request);
    const faults = findVariableFaults(request);
    if (faults.length > 0) throw failFaults("validation-failed", faults);
    const { sessionId } = request;
    return sessionId === undefined ? launch(call, request) : attach(call, request, sessionId);
  };
}

function browserOf(request: CreateAgentSessionRequest) {
  const { archetype, profileId, proxy, timeoutSeconds, idleTimeoutSeconds } = request;
  const { locale, timezone, viewport, labels, onChallenge, block, geolocation, webdriver } = request;
  return {
    labels,
    onChallenge,
    ...(archetype !== undefined && { archetype }),
    ...(profileId !== undefined && { profileId }),
    ...(proxy && { proxy }),
    ...(timeoutSeconds !== undefined && { timeoutSeconds }),
    ...(idleTimeoutSeconds !== undefined && { idleTimeoutSeconds }),
    ...(locale !== undefined && { locale }),
    ...(timezone !== undefined && { timezone }),
    ...(viewport && { viewport }),
    ...(block && { block }),
    ...(geolocation && { geolocation }),
    ...(webdriver !== undefined && { webdriver }),
  };
}

/** Identifier of the session that a launch committed. */
function sessionIdOf(session: Message): string {
  const id: unknown = Reflect.get(session, "id");
  if (typeof id !== "string") throw new Error("a launch committed a message without an id");
  return id;
}
