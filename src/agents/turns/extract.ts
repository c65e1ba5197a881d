import type { JsonObject } from "@bufbuild/protobuf";
import type { ModelMessage } from "ai";
import { failFields } from "../../platform/errors.ts";
import { extractPrompt, saveHelp } from "../prompts/side-prompts.ts";
import { callModel, charge } from "./model-call.ts";
import { callsOf } from "./model-messages.ts";
import type { ModelRequest } from "./model-step.ts";
import { escapePageMarkers, type PagePart, type ToolOutcome } from "./page.ts";
import type { TurnRow } from "./store.ts";
import { limitReached } from "./turn-columns.ts";
import type { Run, TurnParts } from "./turn-parts.ts";

/** Maximum number of parts to read, and maximum characters of the extracted data as JSON. */
const max = { parts: 12, data: 16_384 };

export interface Extraction {
  readonly schema: JsonObject;
  readonly instructions: string | undefined;
  readonly ref: string | undefined;
}

/**
 * Extracted data. If reading stopped before the end of the page, `stopped` is the reason, and `next` the offset to
 * resume at.
 */
export interface Extracted {
  readonly data: unknown;
  readonly stopped?: string;
  readonly next?: number;
}

/** Reads parts of a page, and calls a model that extracts the data. */
export interface ExtractionSource {
  read(part: { readonly offset: number; readonly ref?: string }): Promise<PagePart>;
  /** Calls the model. Returns the response and any limit that the turn has now reached, or why there is no response. */
  ask(
    request: Pick<ModelRequest, "system" | "messages" | "tools">,
  ): Promise<{ readonly messages: readonly ModelMessage[]; readonly limit?: string } | { readonly stopped: string }>;
}

/** Validates an extraction schema. Throws `validation-failed` if data cannot be validated against the schema. */
export async function readExtractionSchema(schema: unknown): Promise<JsonObject> {
  if (typeof schema !== "object" || schema === null || Array.isArray(schema))
    throw failFields("validation-failed", { schema: "must be a JSON Schema" });
  // Loaded on demand, because few turns need a validator.
  const { findSchemaFault } = await import("./output-schema.ts");
  const fault = findSchemaFault(schema as JsonObject);
  if (fault !== undefined) throw failFields("validation-failed", { schema: fault });
  return schema as JsonObject;
}

/**
 * Extracts data from the page part by part. The model calls are outside the conversation, so that the conversation
 * receives only the data. The calls are charged to the turn.
 */
export async function extract(parts: TurnParts, turn: TurnRow, run: Run, extraction: Extraction): Promise<ToolOutcome> {
  const source: ExtractionSource = {
    read: (part) => run.page.read(run.caller(), part),
    async ask(request) {
      const response = await callModel(parts, turn, run, request);
      if ("end" in response) return { stopped: "the model could not be called" };
      const charged = await run.write((tx, locked) => charge(parts, tx, locked, run, response, 0));
      const limit = limitReached(charged);
      const { messages } = response;
      return limit === undefined ? { messages } : { messages, limit: `the limit ${limit} of the turn is reached` };
    },
  };
  const described = await describeFound(extraction, await extractFrom(source, extraction));
  return { ...described, seen: undefined };
}

/** Returns the outcome of an extraction in words, and the data as text that is marked as page content. */
export async function describeFound({ schema }: Extraction, { data, stopped }: Extracted) {
  const { findOutputFault } = await import("./output-schema.ts");
  const mismatch = data === undefined ? "no data was found" : findOutputFault(schema, data);
  const faults = [stopped, mismatch].filter((fault) => fault !== undefined);
  const outcome = faults.length === 0 ? "done" : `done, but ${faults.map(escapePageMarkers).join("; ")}`;
  return { outcome, text: `<page data>\n${escapePageMarkers(JSON.stringify(data ?? null))}\n</page>` };
}

/** Reads parts of a page, starting at the offset `from`, and extracts their data. */
export async function extractFrom(source: ExtractionSource, extraction: Extraction, from = 0): Promise<Extracted> {
  const { ref } = extraction;
  let data: unknown;
  let next: number | undefined = from;
  for (let count = 0; next !== undefined; count += 1) {
    if (count === max.parts) return { data, next, stopped: `only the first ${count} parts were read` };
    const part: PagePart = await source.read({ offset: next, ...(ref !== undefined && { ref }) });
    const answer = await source.ask(requestFor(extraction, part, data));
    if ("stopped" in answer) return { data, next, stopped: answer.stopped };
    const saved = savedBy(answer.messages);
    if (saved === undefined) return { data, next, stopped: "the model returned no data for a part" };
    if (JSON.stringify(saved).length > max.data)
      return { data, next, stopped: `the data has more than ${max.data} characters: ask for less` };
    data = saved;
    next = part.next;
    if (next !== undefined && answer.limit !== undefined) return { data, next, stopped: answer.limit };
  }
  return { data };
}

function requestFor({ schema, instructions }: Extraction, part: PagePart, data: unknown) {
  const found =
    data === undefined ? "" : `Found so far:\n<page data>\n${escapePageMarkers(JSON.stringify(data))}\n</page>\n`;
  const wanted = instructions === undefined ? "" : `What to extract: ${instructions}\n`;
  const more = part.next === undefined ? "This is the last part." : "More parts follow.";
  const content = `${wanted}${found}${more}\n${part.text}`;
  const input = { type: "object", properties: { data: schema }, required: ["data"], additionalProperties: false };
  return {
    system: extractPrompt,
    messages: [{ role: "user" as const, content }],
    tools: { save: { description: saveHelp, input } },
  };
}

function savedBy(messages: readonly ModelMessage[]): unknown {
  const calls = messages.flatMap((message) => (message.role === "assistant" ? callsOf(message) : []));
  const input = calls.find(({ name }) => name === "save")?.input;
  return typeof input === "object" && input !== null ? Reflect.get(input, "data") : undefined;
}
