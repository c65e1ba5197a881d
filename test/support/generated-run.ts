import { expect, vi } from "vitest";
import { ObserveScope } from "../../src/gen/pilothouse/v1/session_pb.ts";
import type { GeneratedSite } from "./generated-site.ts";
import type { DrivenSession } from "./worker-under-test.ts";

interface Line {
  readonly role: string;
  readonly name: string;
  readonly ref: string;
}

/** Parses a snapshot as documented. */
export function readSnapshot(snapshot: string): Line[] {
  return snapshot.split("\n").flatMap((line) => {
    const [, role = "", name = '""', ref = ""] =
      /^ *[-*] ([a-z]+)(?: ("(?:[^"\\]|\\.)*"))?(?: ref=(s\d+e\d+))?/.exec(line) ?? [];
    return role === "" ? [] : [{ role, name: JSON.parse(name), ref }];
  });
}

/** Returns the elements of a snapshot with references, and faults of elements without. */
function findThings(snapshot: string): { readonly things: ReadonlyMap<number, Line>; readonly faults: string[] } {
  const things = new Map<number, Line>();
  const faults: string[] = [];
  for (const line of readSnapshot(snapshot)) {
    if (line.ref === "") continue;
    const number = Number(/thing-(\d+)/.exec(line.name)?.[1] ?? 0);
    if (number === 0 || things.has(number)) faults.push(`${line.role} ${line.name} has a reference`);
    things.set(number, line);
  }
  return { things, faults };
}

/** Takes a snapshot of a generated page and acts on every reference. Returns descriptions of faults. */
async function actOnAll(session: DrivenSession, site: GeneratedSite, seed: number): Promise<string[]> {
  const { active, html } = site.page(seed);
  await session.navigate({ url: site.url(seed) });
  const inView = findThings((await session.observe()).snapshot);
  const { things, faults } = findThings((await session.observe({ scope: ObserveScope.PAGE })).snapshot);
  for (const number of active) if (!things.has(number)) faults.push(`thing-${number} has no reference`);
  for (const number of inView.things.keys()) {
    if (!active.includes(number)) faults.push(`thing-${number}, which is in view, has a reference`);
  }
  let count = 0;
  for (const [number, { ref, role }] of things) {
    if (!active.includes(number)) {
      // Outside the viewport, an element in front of another is detected only after scrolling.
      if (!html.includes(`thing-${number}</button><div class=cover>`)) faults.push(`thing-${number} has a reference`);
      continue;
    }
    const request = {
      action: { case: role === "combobox" ? "hover" : "tap", value: { ref } },
      timeoutMs: 20_000,
    } as const;
    const said = await session.interact(request).catch((thrown: Error) => thrown);
    if (said instanceof Error) {
      faults.push(`thing-${number} was not hit: ${said.message}`);
      continue;
    }
    const told = await vi.waitUntil(
      async () => {
        const { title } = await session.state();
        return Number(title.split(" ")[0]) > count && title;
      },
      { timeout: 10_000 },
    );
    count += 1;
    if (told !== `${count} ${number}`) faults.push(`a tap at thing-${number} told ${told}`);
    count = Number(told.split(" ")[0]);
  }
  return [...inView.faults, ...faults].map((fault) => `page ${seed}: ${fault}`);
}

export async function expectNoFaults(session: DrivenSession, site: GeneratedSite, first: number, count: number) {
  const faults: string[] = [];
  for (let seed = first; seed < first + count; seed += 1) faults.push(...(await actOnAll(session, site, seed)));
  expect(faults).toEqual([]);
}
