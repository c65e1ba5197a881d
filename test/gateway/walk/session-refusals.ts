import { create, type DescMethod } from "@bufbuild/protobuf";
import { EmptySchema } from "@bufbuild/protobuf/wkt";
import { expect } from "vitest";
import { AgentSessionService } from "../../../src/gen/pilothouse/v1/agent_session_pb.ts";
import { AgentTurnService } from "../../../src/gen/pilothouse/v1/agent_turn_pb.ts";
import { AgentViewService } from "../../../src/gen/pilothouse/v1/agent_view_pb.ts";
import { ProfileService } from "../../../src/gen/pilothouse/v1/profile_pb.ts";
import { NavigateResponseSchema, SessionService } from "../../../src/gen/pilothouse/v1/session_pb.ts";
import { fail } from "../../../src/platform/errors.ts";
import { fleetCommands } from "../../../src/platform/grpc/fleet-commands.ts";
import { WrongAddressee } from "../../../src/platform/grpc/grpc-failure.ts";
import { makeAddressRules } from "../../../src/platform/outgoing/address-rules.ts";
import { resolveName } from "../../../src/platform/outgoing/target-resolution.ts";
import { netFailure } from "../../../workers/driver/actions/browser-failure.ts";
import { checkProxy } from "../../../workers/egress/proxy-check.ts";
import { CommandProgress } from "../../../workers/pages/progress.ts";
import { FakeWorker, type FakeWorkerOptions, requestOf } from "../../support/fake-worker.ts";
import type { Person } from "../../support/people.ts";
import type { PeopleGateway } from "../../support/people-gateway.ts";
import { bringTermsIntoForce } from "../../support/terms.ts";
import { arrange, type Refusal, type Refused } from "./refusals.ts";

/** Variables of the deployment for these refusals. The port of the proxy is closed. */
export const refusalsEnv = {
  BUNDLED_LLM_API_KEY: "good-operators-own",
  BUNDLED_LLM_MODEL: "claude-bundled",
  BUNDLED_LLM_PRICE: "3/0.3/15",
};
const deadProxy = "127.0.0.1:9";
const guard = { rules: makeAddressRules({ allow: [deadProxy] }), resolve: resolveName };

const { create: createSession, navigate } = SessionService.method;
const { create: createAgent, takeOver, handBack } = AgentSessionService.method;
const { sendMessage } = AgentTurnService.method;
const settings = "/v1/account/me/bundled-llm-settings";
const pageOf = (name: string) => `https://${name}.example/`;

/** Makes a worker that fails as real ones do: at a navigation by its address, at a launch by its language. */
export function failingWorker(options: Pick<FakeWorkerOptions, "control" | "token">): FakeWorker {
  const worker = new FakeWorker({
    ...options,
    slots: 60,
    handlers: {
      async create(_call, command) {
        const { context } = command;
        const { plan } = requestOf(fleetCommands.create, command);
        // The connection breaks as that to a process that has ended.
        if (plan?.locale === "de-DE") throw new WrongAddressee("not this worker");
        if (plan?.locale === "fr-FR")
          throw fail("capacity-unavailable", {}, { detail: "the worker is full: try again in a moment" });
        worker.held.set(context?.sessionId ?? "", context?.placementEpoch ?? 0n);
        return create(EmptySchema);
      },
      async navigate(_call, command) {
        const request = requestOf(fleetCommands.navigate, command);
        if (request.url === pageOf("unknown")) throw netFailure("ERR_NAME_NOT_RESOLVED", { url: request.url });
        if (request.url === pageOf("broken")) throw new TypeError("a fault of the worker");
        if (request.url === pageOf("slow")) {
          using progress = new CommandProgress(1, []);
          await progress.race(new Promise(() => undefined));
        }
        return create(NavigateResponseSchema, { url: request.url, httpStatus: 200 });
      },
      async checkProxy({ signal }, command) {
        await checkProxy(guard, command, signal);
        return create(EmptySchema);
      },
    },
  });
  return worker;
}

const as = ({ accessToken: token }: Person, method: DescMethod, request: object): Refused => ({
  method,
  request,
  shown: { token },
});

async function withSession(gateway: PeopleGateway): Promise<{ person: Person; id: string }> {
  const person = await gateway.signUp();
  const { status, body } = await person.rest("/v1/sessions", {});
  expect(status).toBe(201);
  return { person, id: body.id };
}

async function withAgent(gateway: PeopleGateway, request: object = {}): Promise<{ person: Person; id: string }> {
  const person = await gateway.signUp();
  const { status, body } = await person.rest("/v1/agent-sessions", request);
  expect(status).toBe(201);
  return { person, id: body.id };
}

const navigating =
  (name: string): Refusal["prepare"] =>
  async (gateway) => {
    const { person, id } = await withSession(gateway);
    return as(person, navigate, { id, url: pageOf(name) });
  };

const messaging =
  (prepare: (person: Person) => Promise<unknown>, request?: object): Refusal["prepare"] =>
  async (gateway) => {
    const { person, id } = await withAgent(gateway, request);
    await prepare(person);
    return as(person, sendMessage, { id, text: "Go on." });
  };

let revisions = 0;

/** The ways to be refused for what a session, its browser or its agent is in. */
export const sessionRefusals: readonly Refusal[] = [
  {
    slug: "validation-failed",
    why: "a name that is too short",
    prepare: async (gateway) => as(await gateway.signUp(), ProfileService.method.create, { name: "" }),
  },
  {
    slug: "session-destroyed",
    why: "a session that has ended",
    extensions: {
      ended_reason: "destroyed",
      ended_at: expect.stringMatching(/Z$/),
      duration_ms: expect.stringMatching(/^\d+$/),
    },
    async prepare(gateway) {
      const { person, id } = await withSession(gateway);
      await person.rest(`/v1/sessions/${id}`, undefined, { method: "DELETE" });
      return as(person, navigate, { id, url: pageOf("any") });
    },
  },
  {
    slug: "driver-error",
    why: "a page whose name nobody knows",
    extensions: { net_error: "ERR_NAME_NOT_RESOLVED" },
    prepare: navigating("unknown"),
  },
  { slug: "session-timeout", why: "a page that does not answer", prepare: navigating("slow") },
  { slug: "internal", why: "a fault of the service", prepare: navigating("broken") },
  {
    slug: "proxy-validation-failed",
    why: "a proxy that does not listen",
    extensions: { reason: "unreachable" },
    async prepare(gateway) {
      return as(await gateway.signUp(), createSession, { proxy: { server: `http://${deadProxy}` } });
    },
  },
  {
    slug: "internal",
    why: "a worker that is lost during the launch",
    comesAgain: 2,
    prepare: async (gateway) => as(await gateway.signUp(), createSession, { locale: "de-DE" }),
  },
  {
    slug: "capacity-unavailable",
    why: "a worker without a free slot",
    comesAgain: 2,
    prepare: async (gateway) => as(await gateway.signUp(), createSession, { locale: "fr-FR" }),
  },
  {
    slug: "driver-not-integrated",
    why: "an agent on a runtime that agents do not drive",
    async prepare(gateway) {
      const person = await gateway.signUp();
      const { body } = await person.rest("/v1/sessions", { runtime: "headless-shell" });
      return as(person, createAgent, { session_id: body.id });
    },
  },
  {
    slug: "profile-in-use",
    why: "a profile of a session that runs",
    extensions: { active_session_id: expect.stringMatching(/^ses_/) },
    async prepare(gateway) {
      const person = await gateway.signUp();
      await arrange(gateway, person, { limit: "concurrent_sessions", value: 2 });
      const { body: profile } = await person.rest("/v1/profiles", { name: "Shop" });
      const request = { profile_id: profile.id };
      expect(await person.rest("/v1/sessions", request)).toMatchObject({ status: 201 });
      return as(person, createSession, request);
    },
  },
  {
    slug: "feature-unavailable",
    why: "a token for a media server that the deployment does not have",
    async prepare(gateway) {
      const { person, id } = await withAgent(gateway);
      return as(person, AgentViewService.method.createMediaToken, { id });
    },
  },
  {
    slug: "pair-mode-conflict",
    why: "control that another client holds",
    extensions: { winner_client_id: "ada" },
    async prepare(gateway) {
      const { person, id } = await withAgent(gateway);
      await person.rest(`/v1/agent-sessions/${id}/takeover`, { client_id: "ada" });
      return as(person, takeOver, { id, client_id: "ben" });
    },
  },
  {
    slug: "pair-mode-invalid-transition",
    why: "control that nobody holds, handed back",
    extensions: { from: "agent_control", transition: "handback" },
    async prepare(gateway) {
      const { person, id } = await withAgent(gateway);
      return as(person, handBack, { id });
    },
  },
  {
    slug: "bundled-llm-consent-required",
    why: "a message to the bundled LLM without consent",
    prepare: messaging(async () => undefined),
  },
  {
    slug: "bundled-llm-budget-exhausted",
    why: "a message to the bundled LLM past the cap",
    prepare: messaging(({ rest }) =>
      rest(settings, { bundled_llm_consent: true, monthly_cap_cents: 0 }, { method: "PATCH" }),
    ),
  },
  {
    slug: "byok-llm-required",
    why: "a message to a model that nobody pays",
    prepare: messaging(async () => undefined, { model: "anthropic/claude-other" }),
  },
];

/** A refusal for terms that were not accepted. Afterwards every account is refused. */
export const termsRefusal: Refusal = {
  slug: "legal-acceptance-required",
  why: "terms that are not accepted",
  extensions: { revision_id: expect.stringMatching(/^rev_\d$/), url: "https://example.com/terms" },
  async prepare(gateway) {
    revisions += 1;
    await bringTermsIntoForce(gateway, { id: `rev_${revisions}`, url: "https://example.com/terms" });
    return as(await gateway.signUp(), ProfileService.method.list, {});
  },
};
