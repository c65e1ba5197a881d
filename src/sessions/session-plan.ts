import { create } from "@bufbuild/protobuf";
import {
  type CreateSessionRequest,
  CreateSessionRequestSchema,
  OnChallenge,
  type Proxy as ProxyMessage,
  ProxySchema,
} from "../gen/pilothouse/v1/session_pb.ts";
import type { Tier } from "../limits/tiers.ts";
import {
  type Archetype,
  closeArchetypes,
  DEFAULT_ARCHETYPE,
  findArchetype,
  isDesktop,
} from "../platform/archetypes.ts";
import { failFields } from "../platform/errors.ts";

/** What a create comes to: the request with all defaults filled in, and what follows from it. */
export interface SessionPlan {
  readonly request: CreateSessionRequest;
  readonly archetype: string;
  readonly runtime: string;
  readonly timeoutSeconds: number;
  readonly idleTimeoutSeconds: number;
  readonly viewport: { readonly width: number; readonly height: number; readonly deviceScaleFactor: number };
}

const defaultRuntime = "headless-shell";
const defaultIdleTimeoutSeconds = 300;
const defaultTimezone = "UTC";

type Faults = Record<string, string>;

function isTimezone(timeZone: string): boolean {
  try {
    new Intl.DateTimeFormat("en", { timeZone });
    return true;
  } catch {
    return false;
  }
}

function isLocale(locale: string): boolean {
  try {
    return Intl.getCanonicalLocales(locale).length === 1;
  } catch {
    return false;
  }
}

function unknownArchetype(name: string): string {
  const close = closeArchetypes(name);
  const offer = close.length > 0 ? `; close matches: ${close.join(", ")}` : "";
  return `is not an archetype${offer}`;
}

/** `scheme://user:password@host:port`, as most proxies are handed out; a password may hold all but the end of an address. */
const proxyAddress =
  /^(?<scheme>https?|socks5):\/\/(?:(?<login>[^\s/?#]*)@)?(?<host>(\[[0-9a-fA-F:.]+\]|[^\s/?#@:[\]]+):\d{1,5})$/;

/** SOCKS5 gives each part of a login one byte for its length (RFC 1929). */
const longestSocksField = 255;

/** Reads percent-encoded text. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    // The text is not repeated: it is a secret.
    throw failFields("bad-request", { "proxy.server": "has a login with a % that encodes nothing: write it as %25" });
  }
}

/** Takes the login out of a proxy's address, so that it is never shown, and checks what is left. */
function planProxy(proxy: ProxyMessage): ProxyMessage {
  const { scheme, login, host } = proxyAddress.exec(proxy.server)?.groups ?? {};
  const server = `${scheme}://${host}`;
  if (host === undefined || !URL.canParse(server)) {
    throw failFields("bad-request", {
      "proxy.server":
        "must be http://, https:// or socks5:// with host and port, and at most user:password@ before them",
    });
  }
  const [, user = "", secret] = /^([^:]*)(?::(.*))?$/.exec(login ?? "") ?? [];
  const username = proxy.username ?? (user === "" ? undefined : decoded(user));
  const password = proxy.password ?? (secret === undefined ? undefined : decoded(secret));
  for (const [name, value = ""] of Object.entries({ username, password })) {
    if (!server.startsWith("socks5:") || Buffer.byteLength(value) <= longestSocksField) continue;
    throw failFields("validation-failed", { [`proxy.${name}`]: `is at most ${longestSocksField} bytes for socks5` });
  }
  return create(ProxySchema, {
    server,
    ...(username !== undefined && { username }),
    ...(password !== undefined && { password }),
  });
}

function findFaults(request: CreateSessionRequest, archetype: Archetype | undefined, tier: Tier): Faults {
  const { timezone, locale, timeoutSeconds, viewport } = request;
  const longest = tier.longestSessionSeconds;
  return {
    ...(!archetype && { archetype: unknownArchetype(request.archetype ?? "") }),
    ...(timezone !== undefined && !isTimezone(timezone) && { timezone: "is not an IANA time zone" }),
    ...(locale !== undefined && !isLocale(locale) && { locale: "is not a BCP 47 language tag" }),
    ...(timeoutSeconds !== undefined &&
      timeoutSeconds > longest && { timeout_seconds: `is at most ${longest} on tier ${tier.name}` }),
    ...(viewport && archetype && !isDesktop(archetype) && { viewport: "can be chosen for desktop archetypes only" }),
  };
}

/** Checks what the proto's rules cannot say of a create, and fills in the defaults. */
export function planSession(request: CreateSessionRequest, tier: Tier): SessionPlan {
  const name = request.archetype ?? DEFAULT_ARCHETYPE;
  const archetype = findArchetype(name);
  const faults = findFaults(request, archetype, tier);
  if (!archetype || Object.keys(faults).length > 0) throw failFields("validation-failed", faults);
  const proxy = request.proxy && planProxy(request.proxy);
  const {
    runtime = defaultRuntime,
    timeoutSeconds = tier.longestSessionSeconds,
    idleTimeoutSeconds = defaultIdleTimeoutSeconds,
    timezone = defaultTimezone,
    viewport,
  } = request;
  const onChallenge = request.onChallenge || OnChallenge.PAUSE;
  const defaults = { archetype: name, runtime, timeoutSeconds, idleTimeoutSeconds, timezone, onChallenge };
  const { width, height } = viewport ?? archetype.viewport;
  const deviceScaleFactor = viewport?.deviceScaleFactor || archetype.deviceScaleFactor;
  return {
    request: create(CreateSessionRequestSchema, { ...request, ...defaults, ...(proxy && { proxy }) }),
    archetype: name,
    runtime,
    timeoutSeconds,
    idleTimeoutSeconds,
    viewport: { width, height, deviceScaleFactor },
  };
}
