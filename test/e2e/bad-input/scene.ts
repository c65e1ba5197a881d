import type { Service } from "../../support/service.ts";

/** What all bad requests are sent to. */
export interface Scene {
  readonly service: Service;
  /** A live session of the developer's account. */
  readonly sessionId: string;
}

/** Gives the scene once it is set up. */
export type GetScene = () => Scene;

/** The verb, path below `/v1/sessions` (with `{id}`), and a body that is right, of each endpoint of SessionService. */
export const endpoints = [
  { verb: "POST", path: "", body: {} },
  { verb: "GET", path: "" },
  { verb: "GET", path: "/{id}" },
  { verb: "DELETE", path: "/{id}" },
  { verb: "POST", path: "/{id}/navigate", body: { url: "about:blank" } },
  { verb: "POST", path: "/{id}/interact", body: { action: { kind: "scroll", dy: 1 } } },
  { verb: "POST", path: "/{id}/wait", body: { condition: { kind: "load_state" } } },
  { verb: "GET", path: "/{id}/state" },
  { verb: "POST", path: "/{id}/capture", body: { kind: "screenshot" } },
  { verb: "GET", path: "/{id}/events" },
] as const satisfies readonly { verb: string; path: string; body?: unknown }[];

/** Those that are about one session. */
export const sessionEndpoints = endpoints.filter(({ path }) => path.startsWith("/{id}"));

/** The path of an endpoint for a session. */
export function pathOf({ path }: { readonly path: string }, id: string): string {
  return `/v1/sessions${path.replace("{id}", id)}`;
}
