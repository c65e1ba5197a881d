import { writeFile } from "node:fs/promises";
import type { Command, Invocation, Option } from "../command.ts";
import { pageUrl } from "../page-url.ts";
import { UsageError } from "../usage-error.ts";

const timeout: Option = { type: "string", value: "SECONDS", help: "time for loading and reading the page" };

/** Returns the session if the argument is a session id, or undefined for a URL. */
async function findSession({ client, positionals: [target = ""], signal }: Invocation) {
  return /^ses_\w+$/.test(target) ? await client().sessions.get(target, { signal }) : undefined;
}

/** Returns a format of a page that is fetched by its URL. */
async function fetchFormat<Format extends "markdown" | "screenshot" | "pdf">(invocation: Invocation, format: Format) {
  const { client, positionals, values, signal, output } = invocation;
  const url = pageUrl(positionals[0] ?? "");
  const seconds = values.number("timeout");
  const request = { formats: [format], ...(seconds !== undefined && { timeout_ms: seconds * 1_000 }) };
  const page = await client().fetch(url, request, { signal });
  const content = page[format];
  if (content === undefined) throw new Error(page.incomplete_reason ?? `the page has no ${format}`);
  if (!page.complete) output.progress(`The page is incomplete: ${page.incomplete_reason}`);
  if (page.challenge) output.progress("The page is a bot check.");
  return content;
}

/** Throws UsageError if bytes would be written to a terminal. */
function checkTarget({ stdout, positionals: [, path] }: Invocation): void {
  if (path === "-" && stdout.isTTY)
    throw new UsageError("expected a file, got - on a terminal: name a file, or redirect the output");
}

/** Writes a file, or to standard output for `-`. */
async function save({ output, positionals: [, path] }: Invocation, fallback: string, bytes: Uint8Array): Promise<void> {
  const file = path ?? fallback;
  if (file === "-") return await output.raw(bytes);
  await writeFile(file, bytes);
  output.result({ file, bytes: bytes.length }, `${file} (${bytes.length} bytes)`);
}

export const shotCommand: Command = {
  summary: "saves a screenshot of a URL or a session as PNG",
  positionals: "URL|SESSION [FILE]",
  count: [1, 2],
  options: { timeout, "full-page": { type: "boolean", help: "the whole page of a session" } },
  async run(invocation) {
    checkTarget(invocation);
    const session = await findSession(invocation);
    const request = { full_page: invocation.values.isSet("full-page") };
    if (request.full_page && !session)
      throw new UsageError("expected the id of a session for --full-page, got a URL: open it with pilothouse open");
    const bytes = session ? await session.screenshot(request) : await fetchFormat(invocation, "screenshot");
    await save(invocation, "page.png", bytes);
  },
};

export const pdfCommand: Command = {
  summary: "saves a URL or the page of a session as PDF",
  positionals: "URL|SESSION [FILE]",
  count: [1, 2],
  options: { timeout },
  async run(invocation) {
    checkTarget(invocation);
    const session = await findSession(invocation);
    await save(invocation, "page.pdf", session ? await session.pdf() : await fetchFormat(invocation, "pdf"));
  },
};

export const readCommand: Command = {
  summary: "prints a URL or the page of a session as Markdown",
  positionals: "URL|SESSION",
  count: [1, 1],
  options: { timeout },
  async run(invocation) {
    const session = await findSession(invocation);
    const markdown = session ? await session.markdown() : await fetchFormat(invocation, "markdown");
    await invocation.output.raw(markdown.endsWith("\n") ? markdown : `${markdown}\n`);
  },
};
