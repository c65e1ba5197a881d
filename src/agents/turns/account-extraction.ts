import { Deadline } from "../../platform/deadline.ts";
import { fail } from "../../platform/errors.ts";
import type { Database } from "../../platform/postgres/database.ts";
import { type Models, maxResponseTokens } from "../llm/models.ts";
import { choosePayer, credentialOf, type PayerParts } from "../llm/payer.ts";
import { costOf, reserve, settleReservation } from "../llm/spending.ts";
import { recordKeyUse } from "../llm/store.ts";
import { type Extracted, type Extraction, type ExtractionSource, extractFrom } from "./extract.ts";
import { tokensOf } from "./model-messages.ts";

interface AccountExtractionParts extends PayerParts {
  readonly db: Database;
  readonly models: Models;
}

/** Account for which data is extracted, and the choice of the credential and model. */
export interface ExtractionCaller {
  readonly accountId: string;
  /** LLM key of the request header, if the request has one. */
  readonly header: string | undefined;
  /** Model name. Default: the account's model. */
  readonly model: string | undefined;
  /** Milliseconds after which extraction stops. The data found so far is returned. */
  readonly milliseconds: number;
  readonly signal: AbortSignal;
}

/** Extracts data from a page outside of agent sessions, with the LLM credential of an account. */
export type ExtractForAccount = (
  caller: ExtractionCaller,
  extraction: Extraction,
  page: { readonly from: number; readonly read: ExtractionSource["read"] },
) => Promise<Extracted>;

class ExtractionTimeout extends Error {}

const keyGone = "the stored LLM key was deleted or can no longer be decrypted: store a key";

const wrongKey = (message: string) =>
  fail("byok-llm-required", {}, { detail: `the provider rejected the key (${message}): store or send another key` });

export function createAccountExtraction(parts: AccountExtractionParts): ExtractForAccount {
  const { db, models, clock, config } = parts;
  return async ({ accountId, header, model: named, milliseconds, signal }, extraction, { from, read }) => {
    const payer = await choosePayer(db, parts, { accountId, named, header });
    const credential = await credentialOf(db, parts, payer, accountId, header);
    if (!credential) throw fail("byok-llm-required", {}, { detail: keyGone });
    const price = payer.source === "bundled" ? config.bundledLlm?.price : undefined;
    using deadline = new Deadline(milliseconds, () => new ExtractionTimeout("the call timed out"), [signal]);

    const ask: ExtractionSource["ask"] = async (request) => {
      // Loading the model libraries takes about 200 ms, which must not delay startup.
      const { sendModelRequest } = await import("./model-step.ts");
      const input = price ? tokensOf(request) : 0;
      const max = price && costOf({ input, cached: 0, written: input, output: maxResponseTokens }, price);
      const reservation =
        max === undefined ? undefined : await db.transaction((tx) => reserve(tx, clock, accountId, max));
      const question = { ...request, credential, model: payer.model };
      const answer = await sendModelRequest(models, question, deadline.signal).catch((error: unknown) => {
        if (!(error instanceof ExtractionTimeout)) throw error;
        return { stopped: "the call timed out" };
      });
      if ("stopped" in answer) return answer;
      const isFault = "fault" in answer;
      const cost = !isFault && price ? costOf(answer.usage, price) : 0;
      // If a response had started, the reservation stays: the provider charges an amount that it does not report.
      const settled = isFault && answer.isCharged ? undefined : reservation;
      await db.transaction(async (tx) => {
        if (settled) await settleReservation(tx, settled, cost);
        if (payer.source === "byok" && !isFault) recordKeyUse(tx, accountId, new Date(clock.now()));
      });
      if (!isFault) return { messages: answer.messages };
      if (answer.fault.kind === "wrong_key") throw wrongKey(answer.fault.message);
      return { stopped: `the model could not be called: ${answer.fault.message}` };
    };
    return extractFrom({ read, ask }, extraction, from);
  };
}
