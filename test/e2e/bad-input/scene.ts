import { requestExample } from "../../../gateway/openapi/examples.ts";
import { builtServices } from "../../../tools/described-services.ts";
import type { FixtureSite } from "../../support/fixture-site.ts";
import type { Mailbox } from "../../support/mailbox.ts";
import type { Person } from "../../support/people.ts";
import type { Service } from "../../support/service.ts";

/** Target of all bad requests. */
export interface Scene {
  readonly service: Service;
  /** Site that pages may reach. */
  readonly site: FixtureSite;
  readonly mailbox: Mailbox;
  /** Live session of the developer's account. */
  readonly sessionId: string;
  /** Member of the developer's account, whose login this is. */
  readonly person: Person;
  readonly accessToken: string;
}

export type GetScene = () => Scene;

/** Endpoint of the registry. */
export interface Endpoint {
  readonly verb: string;
  /** Template, with `{id}` for an identifier. */
  readonly path: string;
  /** Required scope. */
  readonly scope: string;
  /** Only accepts logins. */
  readonly isForPeople: boolean;
  /** The body is a form, not JSON. */
  readonly takesForm: boolean;
  readonly isPublic: boolean;
  /** The body is not parsed. */
  readonly takesRaw: boolean;
  /** Accepts HEAD, like each GET without side effects. */
  readonly hasHead: boolean;
  /** Example body of the reference page. */
  readonly body?: unknown;
}

export const endpoints: readonly Endpoint[] = builtServices.flatMap(({ methods }) =>
  methods.flatMap(
    ({ route, method, rules: { scope, public: isPublic, loginOnly: isForPeople, formBody: takesForm } }) => {
      if (!route) return [];
      const { verb, template: path, hasBody, hasHead, rawBody } = route;
      const inPath = new Set([...path.matchAll(/\{(\w+)\}/g)].map(([, name = ""]) => name));
      const body = hasBody && { body: requestExample(method.input, inPath) };
      const takesRaw = rawBody !== undefined;
      return [{ verb, path, scope, isPublic, isForPeople, takesForm, takesRaw, hasHead, ...body }];
    },
  ),
);

/** Selects the endpoints or paths to test. */
export type Choose = <Item>(items: readonly Item[], kindOf: (item: Item) => string) => readonly Item[];

/** Returns the kind of an endpoint. The gateway reads headers and bodies of one kind in the same way. */
export function kindOf({ verb, path, scope, isForPeople, takesForm, takesRaw, body }: Endpoint): string {
  return [verb, path.includes("{"), scope === "", isForPeople, takesForm, takesRaw, body === undefined].join();
}

/** Endpoints of one session. */
export const sessionEndpoints = endpoints.filter(({ path }) => path.startsWith("/v1/sessions/{id}"));

/** Returns the address and credentials of a caller that may call an endpoint. */
export function callerOf({ isForPeople }: Endpoint, { service: { url, key }, accessToken }: Scene) {
  return { url, key: isForPeople ? accessToken : key };
}

export function pathOf({ path }: { readonly path: string }, id: string): string {
  return path.replace("{id}", id);
}
