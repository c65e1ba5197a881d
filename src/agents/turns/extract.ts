import type { JsonObject } from "@bufbuild/protobuf";
import type { ModelMessage } from "ai";
import { failFields } from "../../platform/errors.ts";
import { extractPrompt, saveHelp } from "../prompts/side-prompts.ts";
import { callModel, charge } from "./model-call.ts";
import { callsOf } from "./model-messages.ts";
import { type Done, defuse, type PagePart } from "./page.ts";
import type { TurnRow } from "./store.ts";
import { limitReached } from "./turn-columns.ts";
import type { Run, TurnParts } from "./turn-parts.ts";

/** Maximum number of parts to read, and characters of the extracted data. */
const max = { parts: 12, data: 16_384 };

interface Extraction {
  readonly schema: JsonObject;
  readonly instructions: string | undefined;
  readonly ref: string | undefined;
}

/** Data found so far, and why reading stopped before the end of the page. */
interface Found {
  readonly data: unknown;
  readonly stopped?: string;
}

/** Parses a schema of the model. Throws `validation-failed` if data cannot be validated against the schema. */
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
 * Reads the page in parts by model calls outside the conversation, which so receives only the extracted data. The turn is
 * charged the calls.
 */
export async function extract(parts: TurnParts, turn: TurnRow, run: Run, extraction: Extraction): Promise<Done> {
  const found = await readParts(parts, turn, run, extraction);
  const { findOutputFault } = await import("./output-schema.ts");
  const misfit = found.data === undefined ? "no data was found" : findOutputFault(extraction.schema, found.data);
  const faults = [found.stopped, misfit].filter((fault) => fault !== undefined);
  const outcome = faults.length === 0 ? "done" : `done, but ${faults.map(defuse).join("; ")}`;
  return { outcome, seen: undefined, text: `<page data>\n${defuse(JSON.stringify(found.data ?? null))}\n</page>` };
}

async function readParts(parts: TurnParts, turn: TurnRow, run: Run, extraction: Extraction): Promise<Found> {
  const { ref } = extraction;
  let data: unknown;
  let next: number | undefined = 0;
  for (let count = 0; next !== undefined; count += 1) {
    if (count === max.parts) return { data, stopped: `only the first ${count} parts were read` };
    const part: PagePart = await run.page.read(run.caller(), { offset: next, ...(ref !== undefined && { ref }) });
    const response = await callModel(parts, turn, run, requestFor(extraction, part, data));
    if ("end" in response) return { data, stopped: "the model could not be called" };
    const charged = await run.write((tx, locked) => charge(parts, tx, locked, run, response, 0));
    const saved = savedBy(response.messages);
    if (saved === undefined) return { data, stopped: "the model returned no data for a part" };
    if (JSON.stringify(saved).length > max.data)
      return { data, stopped: `the data has more than ${max.data} characters: ask for less` };
    data = saved;
    next = part.next;
    const limit = next === undefined ? undefined : limitReached(charged);
    if (limit !== undefined) return { data, stopped: `the limit ${limit} of the turn is reached` };
  }
  return { data };
}

function requestFor({ schema, instructions }: Extraction, part: PagePart, data: unknown) {
  const found = data === undefined ? "" : `Found so far:\n<page data>\n${defuse(JSON.stringify(data))}\n</page>\n`;
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
