import { isLoopbackName } from "./loopback-name.ts";

/** Access token of the login, which a cookie renews. */
interface AccessToken {
  readonly value: string;
  /** Unix time in milliseconds. */
  readonly expiresAt: number;
}

/** `unknown` until the first renewal. */
export type LoginStatus = "unknown" | "in" | "out";

type TabMessage = { readonly token: AccessToken } | { readonly out: true };

/** Milliseconds before the expiry at which a token is renewed, so that no request arrives too late. */
const marginMs = 30_000;

const storedKey = "pilothouse.refresh-token";

/** Over http that is not loopback, browsers store no login cookie. The login then lives as long as the tab. */
export const isTabLogin = location.protocol === "http:" && !isLoopbackName(location.hostname);

const tabs = new BroadcastChannel("pilothouse-login");
const listeners = new Set<() => void>();
let token: AccessToken | undefined;
let status: LoginStatus = "unknown";

function set(next: LoginStatus, nextToken?: AccessToken): void {
  token = nextToken;
  status = next;
  for (const listener of listeners) listener();
}

tabs.addEventListener("message", ({ data }: MessageEvent<TabMessage>) => {
  if ("token" in data) set("in", data.token);
  else set("out");
});

const isFresh = (of: AccessToken | undefined): of is AccessToken =>
  of !== undefined && of.expiresAt - marginMs > Date.now();

/** Login of this browser, for `useSyncExternalStore`. */
export const loginStore = {
  subscribe(listener: () => void): () => void {
    listeners.add(listener);
    return () => listeners.delete(listener);
  },
  status: (): LoginStatus => status,
};

/** Problem document, as far as it is read here. */
interface ProblemBody {
  readonly type?: string;
  readonly title?: string;
  readonly detail?: string;
  readonly instance?: string;
  readonly errors?: readonly { readonly field: string; readonly message: string }[];
}

/** A refused request to the REST API or for a login. */
export class RequestRefused extends Error {
  readonly slug: string;
  readonly requestId: string | undefined;
  readonly faults: readonly { readonly field: string; readonly message: string }[];

  constructor({ type, title, detail, instance, errors = [] }: ProblemBody) {
    super(detail ?? title ?? "the service did not respond as expected");
    this.slug = type?.split("/").at(-1) ?? "internal";
    this.requestId = instance;
    this.faults = errors;
  }
}

async function send(path: string, method: "POST" | "DELETE", body?: object): Promise<Response> {
  const answer = await fetch(path, {
    method,
    headers: { "x-console": "1", ...(body && { "content-type": "application/json" }) },
    ...(body && { body: JSON.stringify(body) }),
  });
  if (!answer.ok) throw new RequestRefused(await answer.json().catch(() => ({})));
  return answer;
}

/** Body of a login's response. */
interface TokenBody {
  readonly access_token: string;
  readonly expires_at: string;
  readonly refresh_token?: string;
}

function storeLogin({ access_token, expires_at, refresh_token }: TokenBody): AccessToken {
  if (isTabLogin && refresh_token !== undefined) sessionStorage.setItem(storedKey, refresh_token);
  const next = { value: access_token, expiresAt: Date.parse(expires_at) };
  set("in", next);
  if (!isTabLogin) tabs.postMessage({ token: next });
  return next;
}

/** Only one tab renews at a time, because a refresh token that is spent twice ends the login. */
function withLoginLock<T>(run: () => Promise<T>): Promise<T> {
  // Missing in insecure contexts, where each tab has a login of its own.
  return "locks" in navigator ? navigator.locks.request("pilothouse-login", run) : run();
}

async function refreshLogin(given: { refreshToken?: string; accountId?: string | undefined }): Promise<AccessToken> {
  const { refreshToken, accountId } = given;
  const account = accountId === undefined ? {} : { account_id: accountId };
  if (isTabLogin) {
    const refresh_token = refreshToken ?? sessionStorage.getItem(storedKey);
    if (refresh_token === null)
      throw new RequestRefused({ type: "unauthorized", detail: "you are not logged in: open the login page" });
    return storeLogin(await (await send("/v1/auth/refresh", "POST", { refresh_token, ...account })).json());
  }
  const body = { ...(refreshToken !== undefined && { refresh_token: refreshToken }), ...account };
  return storeLogin(await (await send("/console/session", "POST", body)).json());
}

/** Returns whether an error means that the login has ended. */
const isOver = (error: unknown): boolean =>
  error instanceof RequestRefused && ["unauthorized", "invalid-auth-token", "forbidden"].includes(error.slug);

/** Renews the access token, unless another tab has just done so. Returns undefined if there is no login. */
async function renew(stale: AccessToken | undefined): Promise<AccessToken | undefined> {
  return withLoginLock(async () => {
    if (isFresh(token) && token !== stale) return token;
    try {
      return await refreshLogin({});
    } catch (error) {
      if (!isOver(error)) throw error;
      set("out");
      return undefined;
    }
  });
}

let renewing: Promise<AccessToken | undefined> | undefined;

/** Returns the access token, renewed if it expires soon. With `isRefused`, renews it in any case. */
export async function accessToken(isRefused = false): Promise<string | undefined> {
  if (!isRefused && isFresh(token)) return token.value;
  renewing ??= renew(isRefused ? token : undefined).finally(() => {
    renewing = undefined;
  });
  return (await renewing)?.value;
}

/** Begins a login with a refresh token. */
export const beginLogin = (refreshToken: string): Promise<unknown> =>
  withLoginLock(() => refreshLogin({ refreshToken }));

/** Continues the login in another account of the person. */
export const switchAccount = (accountId: string): Promise<unknown> => withLoginLock(() => refreshLogin({ accountId }));

/** Marks the login as ended, in all tabs. */
export function markLoggedOut(): void {
  sessionStorage.removeItem(storedKey);
  tabs.postMessage({ out: true });
  set("out");
}

/** Ends the login of this browser. */
export async function endLogin(logOut: () => Promise<unknown>): Promise<void> {
  if (isTabLogin) await logOut();
  else await withLoginLock(() => send("/console/session", "DELETE"));
  markLoggedOut();
}
