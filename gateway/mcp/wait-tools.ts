import { AgentTurnService } from "../../src/gen/pilothouse/v1/agent_turn_pb.ts";
import { type Control, ElementState, SessionService } from "../../src/gen/pilothouse/v1/session_pb.ts";
import { ViewLinkService } from "../../src/gen/pilothouse/v1/view_link_pb.ts";
import { sleep } from "../../src/platform/bounded-wait.ts";
import type { Clock } from "../../src/platform/clock.ts";
import { Failure, failFields } from "../../src/platform/errors.ts";
import { type NamesOf, storedNames } from "../../src/platform/rest-json/field-names.ts";
import { describeTurn, maxTurnWaitMs } from "./agent-tools.ts";
import { pageHead } from "./page-tools.ts";
import {
  choice,
  defineTool,
  integer,
  progressOutput,
  sessionId,
  type ToolContext,
  type ToolResult,
  text,
} from "./tool.ts";

/** Seconds to wait for a person: minimum, default and maximum. */
const personWaitSeconds = { least: 60, usual: 600, max: 3_600 };

/** Milliseconds between checks of whether a person has control. */
const pollEvery = 1_000;

const human = "human_control";

/** Returns the result of a repeated call, after the client has shown the link to the person. */
function afterLink({ state: handle, isAccepted }: NonNullable<ToolContext["answered"]>): ToolResult {
  if (!isAccepted)
    return {
      structured: { status: "declined", next: "the person has declined: continue without the person, or stop" },
    };
  return { structured: { status: "waiting_for_person", handle, next: "call wait with this handle until done" } };
}

/**
 * Returns the control epoch that is reached when a person has taken control and handed it back. Both changes increase
 * the epoch by 1.
 */
const handbackEpoch = (control: Control | undefined): number =>
  (control?.controlEpoch ?? 0) + (control?.state === human ? 1 : 2);

/** Creates the tools `ask_person` and `wait`, which need the current time. */
export function createWaitTools(clock: Pick<Clock, "now">) {
  const askPersonTool = defineTool({
    name: "ask_person",
    description:
      "Asks a person to take control, for a login, a second factor, a bot check or a payment. Returns at once a link that the first visitor can use, and a handle. Show the link to the person, then call wait with the handle.",
    hints: {},
    input: {
      ...sessionId,
      instructions: text("what the person should do"),
      timeout_seconds: integer("default 600", personWaitSeconds.least, personWaitSeconds.max),
    },
    required: ["session_id", "instructions"],
    output: { ...progressOutput, url: text("the link") },
    async run(
      { call, answered },
      { session_id: id, instructions, timeout_seconds: seconds = personWaitSeconds.usual },
    ) {
      if (answered) return afterLink(answered);
      const { control } = await call(SessionService.method.getState, { id });
      const link = { id, control: true, singleViewer: true, name: instructions.slice(0, 100).toWellFormed() };
      const { url = "" } = await call(ViewLinkService.method.create, { ...link, expiresInSeconds: seconds });
      const handle = `person/${handbackEpoch(control)}/${clock.now() + seconds * 1_000}`;
      const next = "show the url to the person with your instructions, then call wait with this handle until done";
      const ask = { url, message: instructions, state: handle };
      return { structured: { status: "waiting_for_person", url, handle, next }, ask };
    },
  });

  /**
   * Waits up to `ms` milliseconds for a person to hand back control: until the control epoch is at least `epoch` and no
   * person has control. Reports `timed_out` if no person has control at the time `until`, in Unix milliseconds.
   */
  async function waitForPerson({ call, signal }: ToolContext, id: string, epoch: number, until: number, ms: number) {
    const handle = `person/${epoch}/${until}`;
    const pollUntil = clock.now() + ms;
    for (;;) {
      const { control } = await call(SessionService.method.getState, { id });
      const isBack = control !== undefined && control.controlEpoch >= epoch && control.state !== human;
      if (isBack) return { structured: { status: "done", next: "call observe: the person may have changed the page" } };
      if (clock.now() >= until && control?.state !== human)
        return { structured: { status: "timed_out", next: "no person came in time: call ask_person for a new link" } };
      if (clock.now() >= pollUntil || signal.aborted)
        return { structured: { status: "waiting_for_person", handle, next: "call wait again with this handle" } };
      await sleep(pollEvery, signal);
    }
  }

  const waitTool = defineTool({
    name: "wait",
    description:
      "Waits for work of an earlier call (handle), or until the page shows a text or has an element or url. Give one of them. If status is not done by then, call it again.",
    hints: { readOnly: true, idempotent: true },
    input: {
      ...sessionId,
      handle: text("from run_agent, run_recipe or ask_person"),
      text: text("that becomes visible"),
      url: text("glob, such as **/thanks"),
      selector: text("CSS"),
      state: choice("of selector; default visible", "visible", "hidden", "attached", "detached"),
      seconds: integer("default 30", 1, maxTurnWaitMs / 1_000),
    },
    required: ["session_id"],
    output: { ...progressOutput, page: { type: "string" }, text: { type: "string" }, output: { type: "object" } },
    async run(context, { session_id: id, handle, seconds = 30, ...condition }) {
      if (handle === undefined) return waitForPage(context, id, condition, seconds * 1_000);
      const [, epoch, until] = /^person\/(\d{1,9})\/(\d{1,15})$/.exec(handle) ?? [];
      if (until !== undefined) return waitForPerson(context, id, Number(epoch), Number(until), seconds * 1_000);
      const [, agentId, turnId] = /^(agt_\w+)\/(trn_\w+)$/.exec(handle) ?? [];
      if (agentId === undefined || turnId === undefined)
        throw failFields("validation-failed", { handle: "must be the handle of an earlier result, unchanged" });
      const request = { id: agentId, turnId, waitMs: seconds * 1_000 };
      return describeTurn(agentId, await context.call(AgentTurnService.method.getTurn, request));
    },
  });

  return { askPersonTool, waitTool };
}

interface PageCondition {
  readonly text?: string;
  readonly url?: string;
  readonly selector?: string;
  readonly state?: NamesOf<typeof ElementState>;
}

const elementStates = storedNames(ElementState);

async function waitForPage({ call }: ToolContext, id: string, input: PageCondition, ms: number): Promise<ToolResult> {
  const { text: shown, url, selector, state = "visible" } = input;
  const conditions = [
    ...(shown === undefined ? [] : [{ case: "text" as const, value: { text: shown } }]),
    ...(url === undefined ? [] : [{ case: "url" as const, value: { pattern: url } }]),
    ...(selector === undefined
      ? []
      : [{ case: "selector" as const, value: { selector, state: elementStates.toMessage(state) } }]),
  ];
  const [condition] = conditions;
  if (!condition || conditions.length > 1)
    throw failFields("validation-failed", { handle: "expected exactly one of handle, text, url and selector" });
  try {
    const page = pageHead(await call(SessionService.method.wait, { id, condition, timeoutMs: ms }));
    return { structured: { status: "done", page, next: "call observe or act" }, text: `done\n${page}` };
  } catch (error) {
    if (!(error instanceof Failure) || error.slug !== "session-timeout") throw error;
    return { structured: { status: "running", next: "not yet: call wait again, or observe to see why" } };
  }
}
