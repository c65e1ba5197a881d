import type { FieldFault } from "../../platform/errors.ts";
import { normaliseHost } from "../../platform/outgoing/address-rules.ts";
import type { OriginStorage } from "./local-storage.ts";

/** Cookie in a storage state of Playwright. */
interface StateCookie {
  readonly name: string;
  readonly value: string;
  readonly domain: string;
  readonly path: string;
  /** Seconds since 1970; -1 for a session cookie. */
  readonly expires: number;
  readonly httpOnly: boolean;
  readonly secure: boolean;
  readonly sameSite: string;
  /** Site that embeds the cookie's site, for a partitioned cookie. */
  readonly partitionKey?: string;
}

/** Storage state in the format of Playwright's `storageState`. */
export interface StorageState {
  readonly cookies: readonly StateCookie[];
  readonly origins: readonly OriginStorage[];
}

/** Cookie of a profile, as `Storage.setCookies` of the DevTools protocol accepts it. */
export interface BrowserCookie extends Omit<StateCookie, "expires" | "sameSite" | "partitionKey"> {
  readonly expires?: number;
  readonly sameSite?: string;
  readonly partitionKey?: { readonly topLevelSite: string; readonly hasCrossSiteAncestor: boolean };
}

/** Value of `sameSite` for cookies without this attribute, which browsers treat as `Lax`. */
const defaultSameSite = "Lax";

export function toStateCookie(cookie: BrowserCookie): StateCookie {
  const { name, value, domain, path, expires = -1, httpOnly, secure, sameSite = defaultSameSite } = cookie;
  const { topLevelSite: partitionKey } = cookie.partitionKey ?? {};
  const partition = partitionKey === undefined ? {} : { partitionKey };
  return { name, value, domain, path, expires, httpOnly, secure, sameSite, ...partition };
}

export function toBrowserCookie({ expires, partitionKey: topLevelSite, ...cookie }: StateCookie): BrowserCookie {
  return {
    ...cookie,
    ...(expires >= 0 && { expires }),
    ...(topLevelSite !== undefined && { partitionKey: { topLevelSite, hasCrossSiteAncestor: true } }),
  };
}

/**
 * Maximum numbers of cookies, of origins, and of localStorage items of all origins together. Chromium keeps 3,300
 * cookies.
 */
const max = { cookies: 3_300, origins: 1_000, items: 100_000 };

/** Maximum characters of the name and value of a cookie together, as in browsers. */
const longestCookie = 4_096;

type Fields = Readonly<Record<string, unknown>>;

/** Fault of a body that is not a JSON object. */
export const noState: FieldFault = { field: "body", message: "must be a JSON object with cookies and origins" };

/** Validates a storage state of a client. Returns its faults if it is not valid. */
export function readState(json: unknown): { readonly state: StorageState } | { readonly faults: FieldFault[] } {
  if (!isFields(json)) return { faults: [noState] };
  const faults: FieldFault[] = [];
  const cookies = listOf(json.cookies, "cookies", max.cookies, faults);
  const origins = listOf(json.origins, "origins", max.origins, faults);
  for (const [index, cookie] of cookies.entries()) checkCookie(cookie, `cookies[${index}]`, faults);
  let items = 0;
  for (const [index, origin] of origins.entries()) {
    checkOrigin(origin, `origins[${index}]`, faults);
    items += Array.isArray(origin.localStorage) ? origin.localStorage.length : 0;
  }
  if (items > max.items) faults.push({ field: "origins", message: `must have at most ${max.items} items in total` });
  if (faults.length > 0) return { faults };
  // Casts: the fields were checked above.
  return {
    state: {
      cookies: cookies.map((cookie) => pick(cookie as unknown as StateCookie)),
      origins: origins as unknown as OriginStorage[],
    },
  };
}

/** Drops fields that the browser does not accept. */
function pick({
  name,
  value,
  domain,
  path,
  expires,
  httpOnly,
  secure,
  sameSite,
  partitionKey,
}: StateCookie): StateCookie {
  const partition = partitionKey === undefined ? {} : { partitionKey };
  return { name, value, domain, path, expires, httpOnly, secure, sameSite, ...partition };
}

function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function listOf(value: unknown, field: string, longest: number, faults: FieldFault[]): readonly Fields[] {
  if (!Array.isArray(value) || !value.every(isFields)) {
    faults.push({ field, message: "must be a list of objects" });
    return [];
  }
  if (value.length <= longest) return value;
  faults.push({ field, message: `must have at most ${longest} items` });
  return [];
}

function checkCookie(cookie: Fields, at: string, faults: FieldFault[]): void {
  const { name, value, domain, path, expires, partitionKey } = cookie;
  const isText = (text: unknown): text is string => typeof text === "string" && !/[\p{Cc};]/u.test(text);
  const check = (field: string, isValid: boolean, message: string) => {
    if (!isValid) faults.push({ field: `${at}.${field}`, message });
  };
  check("name", isText(name), "must be a text without control characters and `;`");
  check("value", isText(value), "must be a text without control characters and `;`");
  const length = isText(name) && isText(value) ? name.length + value.length : 0;
  check("value", length <= longestCookie, `must have at most ${longestCookie} characters with the name`);
  const host = isText(domain) ? normaliseHost(domain.replace(/^\./, "")) : undefined;
  check("domain", host !== undefined, "must be a host, with `.` in front for its subdomains");
  check("path", isText(path) && path.startsWith("/") && path.length <= 1_024, "must begin with `/`");
  check("expires", Number.isFinite(expires), "must be seconds since 1970, or -1");
  for (const field of ["httpOnly", "secure"]) check(field, typeof cookie[field] === "boolean", "must be a boolean");
  const isSameSite = ["Strict", "Lax", "None"].includes(String(cookie.sameSite));
  check("sameSite", isSameSite, "must be `Strict`, `Lax` or `None`");
  check("partitionKey", partitionKey === undefined || isText(partitionKey), "must be a text");
}

function checkOrigin({ origin, localStorage, indexedDB }: Fields, at: string, faults: FieldFault[]): void {
  const url = typeof origin === "string" ? URL.parse(origin) : null;
  if (!url || !/^https?:$/.test(url.protocol) || url.origin !== origin)
    faults.push({ field: `${at}.origin`, message: "must be an origin, such as https://example.com" });
  const isItem = (item: unknown) => isFields(item) && typeof item.name === "string" && typeof item.value === "string";
  if (!Array.isArray(localStorage) || !localStorage.every(isItem))
    faults.push({ field: `${at}.localStorage`, message: "must be a list of objects with name and value" });
  if (Array.isArray(indexedDB) && indexedDB.length > 0)
    faults.push({ field: `${at}.indexedDB`, message: "is not supported: save the state without indexedDB" });
}
