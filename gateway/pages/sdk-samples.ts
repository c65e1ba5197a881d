import { firstExample, type Json, type Parameter } from "../openapi/model.ts";
import { type CurlTarget, fillPath } from "./curl.ts";

/** Example of an operation with each SDK. */
interface SdkSample {
  readonly typescript: string;
  readonly python: string;
}

type Fields = Readonly<Record<string, Json>>;

/** Maximum characters of a call, list or object in one line. */
const maxLine = 72;

/**
 * Samples of operations for which both SDKs have a method, by operation id. Samples of other operations use
 * `client.request`, `client.raw` or `client.list`.
 */
const methods: Readonly<Record<string, (body: Fields) => SdkSample>> = {
  createSession: (body) => assign("session", callBoth("client.sessions.create", [], body)),
  navigateSession: ({ url = "", ...more }) => run(callBoth("session.goto", [url], more)),
  interactSession: ({ action = {}, ...more }) =>
    run({
      typescript: callBoth("session.interact", [{ action, ...more }], {}).typescript,
      python: callBoth("session.interact", [action], more).python,
    }),
  waitSession: ({ condition = {}, ...more }) => run(callBoth("session.wait", [condition], more)),
  observeSession: (body) => assign("observation", callBoth("session.observe", [], body)),
  readSession: (body) => assign("page", callBoth("session.read", [], body)),
  captureSession: ({ kind: _, ...more }) => assign("picture", callBoth("session.screenshot", [], more)),
  listSessions: () => iterate("session", "client.sessions.list()"),
  getSessionState: () => assign("state", callBoth("session.state", [], {})),
  destroySession: () => run(callBoth("session.end", [], {})),
  fetchSession: ({ url = "", ...more }) => assign("page", callBoth("client.fetch", [url], more)),
  watchSession: () => iterate("event", "session.events()"),
  watchEvent: () => iterate("event", "client.events()"),
  watchSessionLog: () => iterate("entry", "client.sessions.logs(session.id)"),
};

/**
 * Returns the example of an operation with each SDK. Returns undefined for operations that need no key or are outside
 * `/v1/`.
 */
export function sdkSampleOf(target: CurlTarget, parameters: readonly Parameter[]): SdkSample | undefined {
  const { verb, path, operation } = target;
  if (operation.security?.length === 0 || !path.startsWith("/v1/")) return undefined;
  const [type, media] = Object.entries(operation.requestBody?.content ?? {})[0] ?? [];
  const body = media && firstExample(media);
  const method = methods[operation.operationId];
  if (method) return method(isFields(body) ? body : {});
  const verbAndPath = [verb.toUpperCase(), fillPath(path, parameters)];
  const answers = Object.entries(operation.responses).flatMap(([status, response]) =>
    Number(status) < 400 && "content" in response ? Object.entries(response.content ?? {}) : [],
  );
  const json = answers.find(([name]) => name === "application/json")?.[1];
  const answer = json && firstExample(json);
  if (isFields(answer) && "next_cursor" in answer)
    return iterate("item", call("client.list", verbAndPath.slice(1).map(quote)));
  const required = parameters.filter((parameter) => parameter.in === "query" && parameter.required);
  const query = required.length > 0 && {
    query: Object.fromEntries(required.map(({ name, example = "" }) => [name, example])),
  };
  const name = json || answers.length === 0 ? "client.request" : "client.raw";
  if (type === "application/octet-stream") {
    const [typescript, python] = ["{ content }", "content=content"].map((last) =>
      call(name, [...verbAndPath.map(quote), last]),
    );
    return run({ typescript: typescript ?? "", python: python ?? "" });
  }
  const sample = {
    typescript: callBoth(name, verbAndPath, { ...(body !== undefined && { body }), ...query }).typescript,
    python: callBoth(name, body === undefined ? verbAndPath : [...verbAndPath, body], query || {}).python,
  };
  return answers.length > 0 ? assign("answer", sample) : run(sample);
}

function run({ typescript, python }: SdkSample): SdkSample {
  return { typescript: `await ${typescript};`, python };
}

function assign(variable: string, { typescript, python }: SdkSample): SdkSample {
  return { typescript: `const ${variable} = await ${typescript};`, python: `${variable} = ${python}` };
}

function iterate(item: string, list: string): SdkSample {
  return {
    typescript: `for await (const ${item} of ${list}) console.log(${item});`,
    python: `for ${item} in ${list}:\n    print(${item})`,
  };
}

/** Formats a call. The options are the last argument in TypeScript, and keyword arguments in Python. */
function callBoth(name: string, args: readonly Json[], options: Fields): SdkSample {
  const given = Object.entries(options);
  return {
    typescript: call(name, [...args, ...(given.length > 0 ? [options] : [])].map(toTypescript)),
    python: call(name, [...args.map(toPython), ...given.map(([key, value]) => `${key}=${toPython(value)}`)]),
  };
}

function call(name: string, args: readonly string[]): string {
  return `${name}${enclose("(", args, ")")}`;
}

function toTypescript(value: Json): string {
  if (value === null || typeof value === "boolean") return String(value);
  if (typeof value !== "object") return quote(value);
  if (!isFields(value)) return enclose("[", value.map(toTypescript), "]");
  const key = (name: string): string => (/^[a-z_]\w*$/i.test(name) ? name : quote(name));
  const members = Object.entries(value).map(([name, each]) => `${key(name)}: ${toTypescript(each)}`);
  return enclose("{", members, "}", members.length > 0 ? " " : "");
}

function toPython(value: Json): string {
  if (value === null) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (typeof value !== "object") return quote(value);
  if (!isFields(value)) return enclose("[", value.map(toPython), "]");
  return enclose(
    "{",
    Object.entries(value).map(([name, each]) => `${quote(name)}: ${toPython(each)}`),
    "}",
  );
}

const quote = (value: string | number): string => JSON.stringify(value);

/** Joins parts in one line if the line is short enough, else with one part per line. */
function enclose(open: string, parts: readonly string[], close: string, space = ""): string {
  const line = `${open}${space}${parts.join(", ")}${space}${close}`;
  if (line.length <= maxLine && !line.includes("\n")) return line;
  return `${open}\n${parts.map((part) => `  ${part.replaceAll("\n", "\n  ")},\n`).join("")}${close}`;
}

function isFields(value: Json | undefined): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
