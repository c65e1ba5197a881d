import type { BrowserSession, CreateSessionRequest } from "../../../typescript/src/index.ts";
import type { Command, Invocation, Option, OptionValues } from "../command.ts";
import { type Output, oneLine } from "../output.ts";
import { pageUrl } from "../page-url.ts";

/** Options of a new session. */
const creation: Readonly<Record<string, Option>> = {
  profile: { type: "string", value: "ID", help: "start with the logins of a profile" },
  runtime: { type: "string", value: "NAME", help: "browser", choices: ["chromium", "headless-shell"] },
  timeout: { type: "string", value: "SECONDS", help: "end the session after this time" },
};

/** Returns the request of a new session. */
function creationRequest(values: OptionValues): CreateSessionRequest {
  const [profile, timeout, runtime] = [values.text("profile"), values.number("timeout"), values.text("runtime")];
  return {
    ...(profile !== undefined && { profile_id: profile }),
    ...(timeout !== undefined && { timeout_seconds: timeout }),
    // The service rejects unknown names with the known ones.
    ...(runtime !== undefined && { runtime: runtime as NonNullable<CreateSessionRequest["runtime"]> }),
  };
}

/** Opens a URL in a new session, which continues after the command. */
export const openCommand: Command = {
  summary: "opens a URL in a new session and prints a link to watch and control it",
  positionals: "URL",
  count: [1, 1],
  options: creation,
  async run({ client, positionals: [target = ""], values, output, signal }) {
    const url = pageUrl(target);
    const session = await client().sessions.create(creationRequest(values), { signal });
    const page = await openOrEnd(session, url, signal);
    const liveUrl = await session.liveUrl({ control: true }, { signal });
    const result = { id: session.id, url: page.url, title: page.title, live_url: liveUrl };
    output.result(result, `${session.id}  ${oneLine(page.title)}\nWatch it, and take control, at ${liveUrl}`);
    reportEnd(session, output);
  },
};

/** Reports when a new session ends, if the output is for people. */
function reportEnd({ id, data }: BrowserSession, { isJson, progress }: Output): void {
  const minutes = Math.round(data.idle_timeout_seconds / 60);
  if (!isJson) progress(`It ends after ${minutes} minutes without use, or by: pilothouse end ${id}`);
}

/** Loads a URL. If that fails, the session ends, because its id has not been printed. */
async function openOrEnd(session: BrowserSession, url: string, signal: AbortSignal) {
  try {
    return await session.goto(url, {}, { signal });
  } catch (error) {
    await session.end();
    throw error;
  }
}

export const sessionsCommand: Command = {
  summary: "lists sessions, by default the live ones",
  positionals: "",
  count: [0, 0],
  options: {
    all: { type: "boolean", help: "list ended sessions, too" },
    label: { type: "string", multiple: true, value: "NAME:VALUE", help: "list sessions with this label" },
  },
  async run({ client, values, output, signal }) {
    const query = {
      label: values.texts("label"),
      limit: 100,
      ...(!values.isSet("all") && { status: "live" as const }),
    };
    const sessions = [];
    for await (const { data } of client().sessions.list(query, { signal })) sessions.push(data);
    const none = values.isSet("all") ? "no sessions" : "no live sessions; --all lists ended ones, too";
    output.table(sessions, ["id", "status", "archetype", "created_at"], none);
  },
};

export const endCommand: Command = {
  summary: "ends sessions",
  positionals: "SESSION...",
  count: [1, 100],
  async run({ client, positionals, output, signal }) {
    for (const id of positionals) {
      await client().request("DELETE", `/v1/sessions/${encodeURIComponent(id)}`, {}, { signal });
      output.result({ id, status: "destroyed" }, `ended ${id}`);
    }
  },
};

export const cdpCommand: Command = {
  summary: "prints a CDP URL of a session, by default of a new one",
  positionals: "[SESSION]",
  count: [0, 1],
  options: creation,
  async run({ client, positionals: [id], values, output, signal }: Invocation) {
    const { sessions } = client();
    const request = creationRequest(values);
    const session = id === undefined ? await sessions.create(request, { signal }) : await sessions.get(id, { signal });
    const url = await session.cdpUrl({ signal });
    output.result({ id: session.id, url }, url);
    if (id === undefined) reportEnd(session, output);
  },
};
