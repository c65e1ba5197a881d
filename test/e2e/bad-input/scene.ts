import { requestExample } from "../../../gateway/openapi/examples.ts";
import { builtServices } from "../../../tools/described-services.ts";
import type { Service } from "../../support/service.ts";

/** What all bad requests are sent to. */
export interface Scene {
  readonly service: Service;
  /** A live session of the developer's account. */
  readonly sessionId: string;
  /** Of the login of a member of that account. */
  readonly accessToken: string;
}

/** Gives the scene once it is set up. */
export type GetScene = () => Scene;

/** An endpoint of the registry. */
export interface Endpoint {
  readonly verb: string;
  /** With `{id}` where it names one thing. */
  readonly path: string;
  /** The scope that it needs. */
  readonly scope: string;
  /** Only a login may call it. */
  readonly isForPeople: boolean;
  /** Its body is a form, and not JSON. */
  readonly takesForm: boolean;
  readonly isPublic: boolean;
  /** Its body is taken as it comes. */
  readonly takesRaw: boolean;
  /** Its headers alone may be asked for: of a GET that changes nothing. */
  readonly hasHead: boolean;
  /** The example of the reference page, where it takes a body. */
  readonly body?: unknown;
}

/** Every endpoint that is built. */
export const endpoints: readonly Endpoint[] = builtServices.flatMap(({ methods }) =>
  methods.flatMap(
    ({ route, method, rules: { scope, public: isPublic, loginOnly: isForPeople, formBody: takesForm } }) => {
      if (!route) return [];
      const { verb, template: path, hasBody, hasHead, rawBody } = route;
      const body = hasBody && { body: requestExample(method.input, new Set(["id"])) };
      const takesRaw = rawBody !== undefined;
      return [{ verb, path, scope, isPublic, isForPeople, takesForm, takesRaw, hasHead, ...body }];
    },
  ),
);

/** Chooses of endpoints, or of paths, those that something is tried at. */
export type Choose = <Item>(items: readonly Item[], kindOf: (item: Item) => string) => readonly Item[];

/** The kind of an endpoint. The door reads headers and bodies of one kind in the same way. */
export function kindOf({ verb, path, scope, isForPeople, takesForm, takesRaw, body }: Endpoint): string {
  return [verb, path.includes("{"), scope === "", isForPeople, takesForm, takesRaw, body === undefined].join();
}

/** Those that are about one session. */
export const sessionEndpoints = endpoints.filter(({ path }) => path.startsWith("/v1/sessions/{id}"));

/** Who may call an endpoint, and where it is. */
export function callerOf({ isForPeople }: Endpoint, { service: { url, key }, accessToken }: Scene) {
  return { url, key: isForPeople ? accessToken : key };
}

/** The path of an endpoint for one thing. */
export function pathOf({ path }: { readonly path: string }, id: string): string {
  return path.replace("{id}", id);
}
