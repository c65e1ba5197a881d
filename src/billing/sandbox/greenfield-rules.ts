import type { SandboxObject } from "./sandbox-store.ts";
import { SandboxRefusal } from "./sandbox-tools.ts";

/** Returns the error message for a value; undefined if the value is valid. */
type Check = (value: unknown) => string | undefined;

/** Checks of the fields of an object. */
interface Shape {
  readonly [name: string]: Check | Shape;
}

const must =
  (isRight: (value: unknown) => boolean, message: string): Check =>
  (value) =>
    isRight(value) ? undefined : message;

const text = must((value) => typeof value === "string", "must be a string");
const flag = must((value) => typeof value === "boolean", "must be a boolean");
const texts = must(
  (value) => Array.isArray(value) && value.every((each) => typeof each === "string"),
  "must be a list of strings",
);
const address = must((value) => typeof value === "string" && URL.canParse(value), "must be an absolute URL");
const oneOf = (...names: readonly string[]): Check =>
  must((value) => names.some((name) => name === value), `must be one of ${names.join(", ")}`);
const between = (min: number, max: number, isWhole = true): Check =>
  must(
    (value) => typeof value === "number" && value >= min && value <= max && (!isWhole || Number.isInteger(value)),
    `must be between ${min} and ${max}`,
  );
const amount = must(
  (value) => /^\d{1,30}(\.\d{1,30})?$/.test(typeof value === "number" ? String(value) : String(value ?? "")),
  "The amount should be 0 or more",
);
const anything: Check = must((value) => typeof value === "object" && value !== null, "must be an object");

/** Maximum minutes: 24 days. A 32-bit timer in milliseconds expires after at most 24.8 days. */
const longest = 34_560;

/** Required and known fields of bodies by request, according to the reference of BTCPay Server's API. */
const bodies: Readonly<Record<string, { readonly needed: readonly string[]; readonly shape: Shape }>> = {
  "POST invoices": {
    needed: ["amount", "currency"],
    shape: {
      amount,
      currency: must((value) => /^[A-Z0-9]{2,12}$/.test(String(value)), "must be a currency code"),
      metadata: anything,
      additionalSearchTerms: texts,
      receipt: anything,
      checkout: {
        expirationMinutes: between(1, longest),
        monitoringMinutes: between(0, longest),
        paymentTolerance: between(0, 100, false),
        paymentMethods: texts,
        defaultPaymentMethod: text,
        speedPolicy: oneOf("HighSpeed", "MediumSpeed", "LowSpeed", "LowMediumSpeed"),
        redirectURL: address,
        redirectAutomatically: flag,
        defaultLanguage: text,
        lazyPaymentMethods: flag,
      },
    },
  },
  "POST invoices/:id/status": { needed: ["status"], shape: { status: oneOf("Invalid", "Settled") } },
};

/** Known query parameters by request. */
const queries: Readonly<Record<string, readonly string[]>> = {
  "GET rates": ["currencyPair"],
  "GET invoices": ["orderId", "textSearch", "status", "startDate", "endDate", "skip", "take"],
  "GET invoices/:id/payment-methods": ["onlyAccountedPayments", "includeSensitive"],
};

interface Fault {
  readonly path: string;
  readonly message: string;
}

function faultsOf(shape: Shape, object: SandboxObject, at = ""): Fault[] {
  return Object.entries(object).flatMap(([name, value]) => {
    const path = `${at}${name}`;
    const rule = Object.hasOwn(shape, name) ? shape[name] : undefined;
    if (rule === undefined) return [{ path, message: "unknown field" }];
    if (typeof rule === "function") {
      const message = rule(value);
      return message === undefined ? [] : [{ path, message }];
    }
    return typeof value === "object" && value !== null
      ? faultsOf(rule, value, `${path}.`)
      : [{ path, message: "must be an object" }];
  });
}

const refusal = (faults: readonly Fault[]): SandboxRefusal =>
  new SandboxRefusal(422, faults.map(({ path, message }) => `${path} ${message}`).join("; "), faults);

function parse(body: string): SandboxObject {
  try {
    const json: unknown = JSON.parse(body);
    if (typeof json === "object" && json !== null) return json;
  } catch {
    // Invalid JSON is rejected below.
  }
  throw refusal([{ path: "", message: "A non-empty JSON object is required" }]);
}

/**
 * Parses the body of a request to BTCPay Server. Throws `SandboxRefusal` if the reference does not allow the request.
 * Also rejects unknown fields and query parameters, which BTCPay Server ignores, so that misspelt names cause an error.
 */
export function readGreenfield(
  route: string,
  {
    url,
    headers,
    body,
  }: { readonly url: URL; readonly headers: Readonly<Record<string, string>>; readonly body: string },
): SandboxObject {
  const unknown = [...url.searchParams.keys()].filter((name) => !queries[route]?.includes(name));
  if (unknown.length > 0) throw refusal(unknown.map((path) => ({ path, message: "unknown parameter" })));
  const rules = bodies[route];
  if (!rules) return {};
  if (!headers["content-type"]?.startsWith("application/json"))
    throw new SandboxRefusal(415, "expected a content type of application/json");
  const read = parse(body);
  const missing = rules.needed.filter((name) => read[name] === undefined);
  const faults = [...missing.map((path) => ({ path, message: "is required" })), ...faultsOf(rules.shape, read)];
  if (faults.length > 0) throw refusal(faults);
  return read;
}
