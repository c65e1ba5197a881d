import type { SandboxObject, SandboxStore } from "../../src/billing/sandbox/sandbox-store.ts";

/** Creates a store of sandbox objects in memory. */
export function createMemoryStore(): SandboxStore {
  const things = new Map<string, { kind: string; thing: SandboxObject }>();
  return {
    get: async (id) => structuredClone(things.get(id)?.thing),
    put: async (kind, thing) => void things.set(thing.id, { kind, thing: structuredClone(thing) }),
    list: async (kind) =>
      [...things.values()]
        .filter((each) => each.kind === kind)
        .map(({ thing }) => structuredClone(thing))
        .reverse(),
  };
}
