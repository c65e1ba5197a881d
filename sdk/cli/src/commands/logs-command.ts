import type { SessionLogEntry, SessionLogEntryList } from "../../../typescript/src/index.ts";
import type { Command, Invocation } from "../command.ts";
import { oneLine } from "../output.ts";

const pageSize = 100;

/** Formats an entry as one line. Which fields it has depends on its type. */
function lineOf(entry: SessionLogEntry): string {
  const { at, type, kind, method, file_name, text, url, position, http_status, outcome, error } = entry;
  const sizes = [
    entry.duration_ms !== undefined && `${entry.duration_ms} ms`,
    entry.bytes !== undefined && `${entry.bytes} bytes`,
  ];
  const parts = [at, type, kind, method, file_name, text, url, position, http_status, outcome, error, ...sizes];
  return oneLine(parts.filter((part) => part !== undefined && part !== false).join(" "));
}

/** Prints the entries of a log. Reports missing entries. */
async function printLog({ client, output, signal }: Invocation, id: string): Promise<void> {
  const path = `/v1/sessions/${encodeURIComponent(id)}/logs` as const;
  let cursor: string | undefined;
  do {
    const query = { limit: pageSize, cursor };
    const page = await client().request<SessionLogEntryList>("GET", path, { query }, { signal });
    if (cursor === undefined) reportGaps(output, page);
    for (const entry of page.data) output.result(entry, lineOf(entry));
    cursor = page.next_cursor ?? undefined;
  } while (cursor !== undefined);
}

function reportGaps(output: Invocation["output"], { level, dropped, lost }: SessionLogEntryList): void {
  if (level === "off") output.progress("The session records no log. Create it with the option logs.");
  if (dropped > 0) output.progress(`The log has reached its maximum size: its oldest ${dropped} entries were dropped.`);
  if (lost) output.progress("The log was lost at the end of the session.");
}

export const logsCommand: Command = {
  summary: "prints the log of a session",
  positionals: "SESSION",
  count: [1, 1],
  options: { follow: { type: "boolean", short: "f", help: "continue with new entries until the session ends" } },
  async run(invocation) {
    const { client, positionals, values, output, signal } = invocation;
    const [id = ""] = positionals;
    if (!values.isSet("follow")) return await printLog(invocation, id);
    for await (const entry of client().sessions.logs(id, { signal })) output.result(entry, lineOf(entry));
  },
};
