import { createHash } from "node:crypto";
import { create, toBinary } from "@bufbuild/protobuf";
import { type BrowserPlan, BrowserPlanSchema } from "../../gen/pilothouse/fleet/v1/fleet_pb.ts";
import { CreateSessionRequestSchema, type FetchRequest } from "../../gen/pilothouse/v1/session_pb.ts";
import type { Call } from "../../kernel/call.ts";
import type { Limits } from "../../limits/limits.ts";
import { assertNavigable } from "../commands/page-address.ts";
import { planSession } from "../launch/session-plan.ts";

/** Milliseconds. `page`: default for loading and reading the page. `launch`: maximum for the launch of the browser. */
const times = { page: 30_000, launch: 30_000 };

/** Milliseconds for connecting to the worker. */
export const fetchConnectMs = 2_000;

/** Milliseconds that the gateway waits for the worker's response after the worker's own timeout. */
export const fetchMarginMs = 5_000;

/** A validated fetch. Fetches of an account with the same `plan` can share a browser. */
export interface FetchOrder {
  readonly call: Call;
  readonly request: FetchRequest;
  readonly plan: BrowserPlan;
  readonly optionsHash: Buffer;
  /** Milliseconds for the worker to launch the browser and read the page. */
  readonly timeoutMs: number;
}

/** Validates a request and plans its browser. Throws if the request is invalid. */
export function planFetch(call: Call, request: FetchRequest, limits: Limits): FetchOrder {
  assertNavigable(request.url);
  const { archetype, locale, timezone, proxy } = request;
  const session = create(CreateSessionRequestSchema, {
    ...(archetype !== undefined && { archetype }),
    ...(locale !== undefined && { locale }),
    ...(timezone !== undefined && { timezone }),
    ...(proxy && { proxy }),
  });
  const plan = planSession(session, limits.of(call.principal)).browser;
  const optionsHash = createHash("sha256").update(toBinary(BrowserPlanSchema, plan)).digest();
  return { call, request, plan, optionsHash, timeoutMs: times.launch + (request.timeoutMs ?? times.page) };
}
