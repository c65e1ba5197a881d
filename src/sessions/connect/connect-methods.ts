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
import { type Bus, nextMessage } from "../../platform/bus.ts";
import type { Clock } from "../../platform/clock.ts";
import { asFailure, fail } from "../../platform/errors.ts";
import type { Ids } from "../../platform/ids.ts";
import type { Database } from "../../platform/postgres/database.ts";
import { hashSecret } from "../../platform/secrets/secrets.ts";
import { callerOf, type SessionMaker } from "../commands/session-caller.ts";
import type { Sessions } from "../sessions.ts";
import { assertOptions, hashOptions, toCreateRequest, writeQuery } from "./connect-options.ts";
import { insertTicket, ticketOpensFor, ticketText, useTicket } from "./tickets.ts";

/**
 * Milliseconds. `slot`: to wait at the concurrency limit, by default. A client that connects right after closing its
 * connection would otherwise meet its own session, whose end its worker reports within 120 ms. `name`: for another
 * client that creates the session of the name. `poll`: between attempts.
 */
const times = { slot: 2_000, name: 2_000, poll: 100 };

export interface ConnectParts {
  readonly db: Database;
  readonly bus: Bus;
  readonly clock: Clock;
  readonly ids: Ids;
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

  /** Creates a ticket for a call by key. Other callers send their bearer in a header again. */
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
          { detail: "the ticket was used, or is for other options: get /json/version again" },
        );
      const id = await findOrLaunch(parts, call, options);
      call.setHeader("x-session-id", id);
      return { relay: (messages) => sessions.proxyCdp(callerOf(call), id, messages) };
    },
  };
}

/** Returns the session that the options select, or launches it. */
async function findOrLaunch(parts: ConnectParts, call: Call, options: ConnectOptions): Promise<string> {
  const { sessions, bus } = parts;
  const { sessionId, name } = options;
  if (sessionId !== undefined) {
    await sessions.assertRunning(call, sessionId);
    return sessionId;
  }
  const deadline = performance.now() + times.name;
  for (;;) {
    const named = name === undefined ? undefined : await sessions.findNamed(call, name);
    if (named !== undefined) return named;
    try {
      return await launch(parts, call, options);
    } catch (thrown) {
      const mayPass = asFailure(thrown).slug === "conflict" && name !== undefined;
      if (!mayPass || performance.now() >= deadline || call.signal.aborted) throw thrown;
      await nextMessage(bus, "session-ended", times.poll, call.signal);
    }
  }
}

async function launch(
  { db, ids, audit, sessions }: ConnectParts,
  call: Call,
  options: ConnectOptions,
): Promise<string> {
  const caller = callerOf(call);
  const maker: SessionMaker = {
    ...caller,
    ...makeAttempt(db, { ids, resumes: false }),
    charge: () => call.charge(),
    audit: (tx, entry) => void audit.append(tx, { ...entry, action: "session.create", call }),
  };
  const connection = { name: options.name, endsWithClients: !options.keepAlive };
  const { waitForSlotMs = times.slot } = options;
  const { id } = await sessions.launch(maker, toCreateRequest({ ...options, waitForSlotMs }), connection);
  if (!call.signal.aborted) return id;
  await sessions.end(caller, id, { reason: "destroyed" });
  throw fail("session-timeout", {}, { detail: "the client went away while its session was launched" });
}

function jsonBody(json: object): HttpBody {
  return create(HttpBodySchema, { contentType: "application/json", data: Buffer.from(JSON.stringify(json)) });
}
