import { setTimeout as delay } from "node:timers/promises";
import { expect } from "vitest";
import type { HostileCase, Step } from "./hostile-step.ts";

/** Milliseconds to wait for an expected state. */
const stateMs = 10_000;

/** Result of a step: members of the response or problem, named as in REST. */
export interface Outcome {
  readonly answer?: Readonly<Record<string, unknown>>;
  readonly problem?: {
    readonly slug: string;
    readonly detail: string;
    readonly extensions: Readonly<Record<string, unknown>>;
  };
}

/** Session that is controlled over one of the transports. */
export interface HostileDriver {
  run(operation: Step["operation"], request: Readonly<Record<string, unknown>>): Promise<Outcome>;
}

/** Runs the steps of a case and checks their responses. `base` is the fixture site's address. */
export async function runHostileCase({ steps }: HostileCase, driver: HostileDriver, base: string): Promise<void> {
  for (const step of steps) {
    const beganAt = performance.now();
    const outcome =
      step.operation === "state" ? await pollState(step, driver, base) : await runStep(step, driver, base);
    const took = performance.now() - beganAt;
    check(step, outcome, base);
    if (step.withinMs !== undefined) expect(took, describe(step)).toBeLessThan(step.withinMs);
  }
}

function runStep(step: Step, driver: HostileDriver, base: string): Promise<Outcome> {
  return driver.run(step.operation, absolute(step.request ?? {}, base));
}

async function pollState(step: Step, driver: HostileDriver, base: string): Promise<Outcome> {
  const endsAt = performance.now() + stateMs;
  for (;;) {
    const outcome = await driver.run("state", {});
    if (performance.now() > endsAt || isAsExpected(step, outcome, base)) return outcome;
    await delay(20);
  }
}

function isAsExpected(step: Step, outcome: Outcome, base: string): boolean {
  try {
    check(step, outcome, base);
    return true;
  } catch {
    return false;
  }
}

function check(step: Step, { answer, problem }: Outcome, base: string): void {
  if (step.problem) {
    expect(problem, describe(step)).toMatchObject({
      slug: step.problem.slug,
      ...(step.problem.extensions && { extensions: step.problem.extensions }),
      ...(step.problem.detail && { detail: expect.stringMatching(step.problem.detail) }),
    });
  } else if (step.answer) {
    expect(problem, describe(step)).toBeUndefined();
    const wanted = Object.entries(absolute(step.answer, base));
    const present = Object.fromEntries(wanted.filter(([, value]) => value !== undefined));
    expect(answer, describe(step)).toMatchObject(present);
    for (const [key, value] of wanted) if (value === undefined) expect(answer, describe(step)).not.toHaveProperty(key);
  }
}

function absolute(json: Readonly<Record<string, unknown>>, base: string): Record<string, unknown> {
  const { url } = json;
  return typeof url === "string" && url.startsWith("/") ? { ...json, url: base + url } : { ...json };
}

function describe({ operation, request }: Step): string {
  return `${operation} ${JSON.stringify(request ?? {})}`;
}
