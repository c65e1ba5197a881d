import { create } from "@bufbuild/protobuf";
import { type HttpBody, HttpBodySchema } from "../../gen/google/api/httpbody_pb.ts";
import {
  type CdpResponse,
  type ConnectOptions,
  ConnectOptionsSchema,
  type ConnectRequest,
  type SessionService,
} from "../../gen/pilothouse/v1/session_pb.ts";
import { makeAttempt } from "../../jobs/idempotency/request-attempt.ts";
import type { AuditLog, Call } from "../../kernel/call.ts";
import type { ServiceImplementation, StreamRelay } from "../../kernel/registry.ts";
import { nextMessage } from "../../platform/bus.ts";
import { asFailure, fail } from "../../platform/errors.ts";
import type { PlatformParts } from "../../platform/platform-parts.ts";
import { hashSecret } from "../../platform/secrets/secrets.ts";
import { callerOf, type SessionCreator } from "../commands/session-caller.ts";
import type { Sessions } from "../sessions.ts";
import { assertOptions, hashOptions, toCreateRequest, writeQuery } from "./connect-options.ts";
import { insertTicket, ticketOpensFor, ticketText, useTicket } from "./tickets.ts";

/**
 * Milliseconds. `slot`: default time to wait at the concurrency limit, where the session of the client's previous
 * connection may still count. `name`: time to wait while another client creates the session with the same name.
 * `poll`: between attempts.
 */
const times = { slot: 10_000, name: 2_000, poll: 100 };

export interface ConnectParts extends Pick<PlatformParts, "db" | "ids" | "bus" | "clock"> {
  readonly audit: AuditLog;
  readonly sessions: Sessions;
  readonly config: { readonly publicUrl: string };
}

type ConnectMethods = Pick<
  ServiceImplementation<typeof SessionService>,
  "connect" | "getConnectVersion" | "listConnectTargets"
>;

/** Creates the methods with which CDP clients create a session by connecting. */
export function createConnectMethods(parts: ConnectParts): ConnectMethods {
  const { db, clock, ids, sessions, config } = parts;
  const address = `${config.publicUrl.replace(/^http/, "ws")}/connect`;

  /** Creates a ticket if the caller uses an API key. Other callers send their token again, in a header. */
  async function makeTicket({ principal }: Call, options: ConnectOptions): Promise<string | undefined> {
    if (principal.kind !== "key" || principal.tokenExpiresAt !== undefined || principal.ticketId !== undefined)
      return undefined;
    const ticket = { id: ids.next("tkt"), secret: ticketText.newSecret() };
    await insertTicket(db, {
      id: ticket.id,
      keyId: principal.keyId,
      secretHash: hashSecret(ticket.secret),
      optionsHash: hashOptions(options),
      opensUntil: new Date(clock.now() + ticketOpensFor * 1_000),
    });
    return ticketText.write(ticket);
  }

  return {
    async getConnectVersion(call, options: ConnectOptions) {
      assertOptions(options);
      call.setHeader("referrer-policy", "no-referrer");
      const ticket = await makeTicket(call, options);
      const path = ticket === undefined ? "" : `/${ticket}`;
      return jsonBody({
        Browser: "Chrome",
        "Protocol-Version": "1.3",
        webSocketDebuggerUrl: `${address}${path}${writeQuery(options)}`,
      });
    },

    async listConnectTargets(call) {
      call.setHeader("referrer-policy", "no-referrer");
      return jsonBody([]);
    },

    async connect(
      call,
      { options = create(ConnectOptionsSchema) }: ConnectRequest,
    ): Promise<StreamRelay<ConnectRequest, CdpResponse>> {
      assertOptions(options);
      const { ticketId } = call.principal;
      if (ticketId !== undefined && !(await useTicket(db, ticketId, hashOptions(options))))
        throw fail(
          "invalid-key",
          {},
          { detail: "the ticket was already used, or is for other options: get /json/version again" },
        );
      const found = await findOrLaunch(parts, call, options);
      call.setHeader("x-session-id", found.id);
      return { relay: (messages) => relay(sessions, call, found, messages) };
    },
  };
}

/**
 * The session of a connection. `isOwn`: whether the session was launched for this client, and has no name by which
 * other clients can find the session.
 */
interface FoundSession {
  readonly id: string;
  readonly isOwn: boolean;
}

/**
 * Returns the session that the options select by id or name. Throws if no running session has the id. Launches a
 * session if no running session has the name, or if the options contain neither.
 */
async function findOrLaunch(parts: ConnectParts, call: Call, options: ConnectOptions): Promise<FoundSession> {
  const { sessions, bus, clock } = parts;
  const { sessionId, name } = options;
  if (sessionId !== undefined) {
    await sessions.assertRunning(call, sessionId);
    return { id: sessionId, isOwn: false };
  }
  const deadline = clock.monotonic() + times.name;
  for (;;) {
    const named = name === undefined ? undefined : await findNamed(sessions, call, name);
    if (named !== undefined) return { id: named, isOwn: false };
    try {
      return { id: await launch(parts, call, options), isOwn: name === undefined };
    } catch (thrown) {
      const mayRetry = asFailure(thrown).slug === "conflict" && name !== undefined;
      if (!mayRetry || clock.monotonic() >= deadline || call.signal.aborted) throw thrown;
      await nextMessage(bus, "session-ended", times.poll, call.signal);
    }
  }
}

/**
 * Returns the identifier of the running session with a name. Asks its worker too, because the row shows the end up to
 * 120 ms late.
 */
async function findNamed(sessions: Sessions, call: Call, name: string): Promise<string | undefined> {
  const id = await sessions.findNamed(call, name);
  if (id === undefined) return undefined;
  try {
    await sessions.getState(callerOf(call), { id });
    return id;
  } catch (thrown) {
    if (asFailure(thrown).slug === "session-destroyed") return undefined;
    throw thrown;
  }
}

async function launch(parts: ConnectParts, call: Call, options: ConnectOptions): Promise<string> {
  const { sessions } = parts;
  const connection = { name: options.name, endsWithClients: !options.keepAlive };
  const { waitForSlotMs = times.slot } = options;
  const { id } = await sessions.launch(
    creatorOf(parts, call),
    toCreateRequest({ ...options, waitForSlotMs }),
    connection,
  );
  if (!call.signal.aborted) return id;
  await sessions.end(callerOf(call), id, { reason: "destroyed" });
  throw fail("session-timeout", {}, { detail: "the client disconnected while its session was launched" });
}

/**
 * Relays the client's messages. If the relay ends before the connection is confirmed, ends a session that was launched
 * for this client only.
 */
async function* relay(
  sessions: Sessions,
  call: Call,
  { id, isOwn }: FoundSession,
  messages: AsyncIterable<ConnectRequest>,
): AsyncGenerator<CdpResponse> {
  let isConfirmed = false;
  try {
    for await (const response of sessions.proxyCdp(callerOf(call), id, messages)) {
      yield response;
      isConfirmed = true;
    }
  } finally {
    if (isOwn && !isConfirmed) await sessions.end(callerOf(call), id, { reason: "destroyed" }).catch(() => undefined);
  }
}

function jsonBody(json: object): HttpBody {
  return create(HttpBodySchema, { contentType: "application/json", data: Buffer.from(JSON.stringify(json)) });
}

/** Returns the caller that creates the session of a connection. A retry of the call creates another session. */
function creatorOf({ db, ids, audit }: ConnectParts, call: Call): SessionCreator {
  return {
    ...callerOf(call),
    ...makeAttempt(db, { ids, resumes: false }),
    charge: () => call.charge(),
    audit: (tx, entry) => void audit.append(tx, { ...entry, action: "session.create", call }),
  };
}
