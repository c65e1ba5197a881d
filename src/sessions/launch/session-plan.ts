import { create } from "@bufbuild/protobuf";
import { type BrowserPlan, BrowserPlanSchema } from "../../gen/pilothouse/fleet/v1/fleet_pb.ts";
import { type Viewport, ViewportSchema } from "../../gen/pilothouse/v1/common_pb.ts";
import {
  type CreateSessionRequest,
  OnChallenge,
  type Proxy as ProxyMessage,
  ProxySchema,
} from "../../gen/pilothouse/v1/session_pb.ts";
import type { Tier } from "../../limits/tiers.ts";
import {
  type Archetype,
  closeArchetypes,
  defaultDevice,
  findArchetype,
  isDesktop,
} from "../../platform/browsers/archetypes.ts";
import { failFaults, failFields } from "../../platform/errors.ts";
import { domainFaults } from "../../platform/outgoing/domain-list.ts";

/** A validated create request with its defaults. */
export interface SessionPlan {
  readonly request: CreateSessionRequest;
  readonly browser: BrowserPlan;
  readonly viewport: Viewport;
  readonly timeoutSeconds: number;
}

const defaultRuntime = "headless-shell";
export const defaultIdleTimeoutSeconds = 300;

type Faults = Record<string, string>;

/** Canonical name of an IANA time zone, as browsers require; undefined if the name is unknown. */
function canonicalTimezone(name: string): string | undefined {
  // Intl also accepts offsets such as +0100, which are not IANA names.
  if (!/^[a-z]/i.test(name)) return undefined;
  try {
    return new Intl.DateTimeFormat("en", { timeZone: name }).resolvedOptions().timeZone;
  } catch {
    return undefined;
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

/**
 * `scheme://user:password@host:port`, the usual form of proxies. The credentials may contain all characters except
 * spaces, `/`, `?` and `#`.
 */
const proxyAddress =
  /^(?<scheme>https?|socks5):\/\/(?:(?<login>[^\s/?#]*)@)?(?<host>(\[[0-9a-fA-F:.]+\]|[^\s/?#@:[\]]+):\d{1,5})$/;

/** SOCKS5 stores the length of each credential in one byte (RFC 1929). */
const longestSocksField = 255;

/** Decodes percent-encoding. Throws `bad-request`. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    // The text is not repeated in the error, because it is a secret.
    throw failFields("bad-request", {
      "proxy.server": "has credentials with an invalid percent-encoding: write % as %25",
    });
  }
}

/**
 * Validates the URL of a proxy, and moves the credentials out of the URL, so that they are never shown. Throws
 * `bad-request` or `validation-failed`.
 */
function planProxy(proxy: ProxyMessage): ProxyMessage {
  const { scheme, login, host } = proxyAddress.exec(proxy.server)?.groups ?? {};
  const server = `${scheme}://${host}`;
  if (host === undefined || !URL.canParse(server)) {
    throw failFields("bad-request", {
      "proxy.server": "must be http://, https:// or socks5://, optionally user:password@, and host:port",
    });
  }
  const [, user = "", secret] = /^([^:]*)(?::(.*))?$/.exec(login ?? "") ?? [];
  const username = proxy.username ?? (user === "" ? undefined : decoded(user));
  const password = proxy.password ?? (secret === undefined ? undefined : decoded(secret));
  for (const [name, value = ""] of Object.entries({ username, password })) {
    if (!server.startsWith("socks5:") || Buffer.byteLength(value) <= longestSocksField) continue;
    throw failFields("validation-failed", {
      [`proxy.${name}`]: `must be at most ${longestSocksField} bytes for socks5`,
    });
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
    ...(timezone !== undefined && !canonicalTimezone(timezone) && { timezone: "is not an IANA time zone" }),
    ...(locale !== undefined && !isLocale(locale) && { locale: "is not a BCP 47 language tag" }),
    ...(timeoutSeconds !== undefined &&
      timeoutSeconds > longest && { timeout_seconds: `must be at most ${longest} on tier ${tier.name}` }),
    ...(viewport && archetype && !isDesktop(archetype) && { viewport: "can be set for desktop archetypes only" }),
  };
}

/**
 * Validates what the proto rules cannot express, and fills in the defaults. Throws `validation-failed` or
 * `bad-request`.
 */
export function planSession(request: CreateSessionRequest, tier: Tier): SessionPlan {
  const archetype = findArchetype(request.archetype ?? defaultDevice.archetype);
  const faults = findFaults(request, archetype, tier);
  if (!archetype || Object.keys(faults).length > 0) throw failFields("validation-failed", faults);
  const { allowedDomains, block, geolocation, webdriver = true } = request;
  const hostFaults = [...domainFaults(allowedDomains), ...domainFaults(block?.hosts ?? [], "block.hosts")];
  if (hostFaults.length > 0) throw failFaults("validation-failed", hostFaults);
  const viewport = planViewport(archetype, request.viewport);
  const { runtime = defaultRuntime, idleTimeoutSeconds = defaultIdleTimeoutSeconds, profileId } = request;
  const chosen = request.timezone === undefined ? undefined : canonicalTimezone(request.timezone);
  const { locale = defaultDevice.locale } = request;
  const browser = create(BrowserPlanSchema, {
    runtime,
    archetype: archetype.name,
    viewport,
    locale,
    timezone: chosen ?? defaultDevice.timezone,
    idleTimeoutSeconds,
    onChallenge: request.onChallenge || OnChallenge.PAUSE,
    ...(request.proxy && { proxy: planProxy(request.proxy) }),
    ...(profileId !== undefined && { profileId }),
    ...(block && { block }),
    ...(geolocation && { geolocation }),
    hidesAutomation: !webdriver,
  });
  const timeoutSeconds = request.timeoutSeconds ?? tier.longestSessionSeconds;
  return { request: { ...request, ...(chosen && { timezone: chosen }) }, browser, viewport, timeoutSeconds };
}

function planViewport(archetype: Archetype, wanted: Viewport | undefined): Viewport {
  const { width, height } = wanted ?? archetype.viewport;
  return create(ViewportSchema, {
    width,
    height,
    deviceScaleFactor: wanted?.deviceScaleFactor || archetype.deviceScaleFactor,
  });
}
