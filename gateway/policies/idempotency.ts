import { createHash } from "node:crypto";
import { type DescMessage, fromBinary, type Message, toBinary } from "@bufbuild/protobuf";
import type { App } from "../../src/app.ts";
import { errorTable } from "../../src/platform/error-table.ts";
import { Failure, fail, failFields } from "../../src/platform/errors.ts";
import type { GatewayCall } from "../call.ts";
import { keepsAnswers } from "../kept-answers.ts";

const LONGEST_KEY = 255;

/** Runs a unary method, or answers as it did the last time this key was used. */
export type RunOnce = (call: GatewayCall, request: Message, run: () => Promise<Message>) => Promise<Message>;

/**
 * Makes the policy behind the Idempotency-Key header: the answer of the first request with a key is kept for 24 h, per
 * account, and given again to the same request. Failures that retrying may cure (5xx and 429) are not kept.
 */
export function createIdempotency({ idempotency }: App): RunOnce {
  return async (call, request, run) => {
    const key = call.idempotencyKey;
    if (key === undefined || !keepsAnswers(call.served)) {
      return run();
    }
    if (key.length === 0 || key.length > LONGEST_KEY) {
      throw failFields("bad-request", { "Idempotency-Key": `must have 1 to ${LONGEST_KEY} characters` });
    }
    const { accountId } = call.principal;
    const { input, output, parent, name } = call.served.method;
    const hash = createHash("sha256").update(`${parent.typeName}/${name}\n`).update(toBinary(input, request)).digest();
    const found = await idempotency.begin(accountId, key, hash);
    if (found === "new") {
      return keepOutcome(idempotency, accountId, key, output, run);
    }
    if (found === "running" || found === "other") {
      const why = found === "running" ? "is still running" : "had another method or body";
      throw fail("conflict", {}, { detail: `the request that came first with this Idempotency-Key ${why}` });
    }
    call.responseHeaders["idempotency-replayed"] = "true";
    if (found.failure) {
      throw found.failure;
    }
    return fromBinary(output, found.answer);
  };
}

async function keepOutcome(
  store: App["idempotency"],
  accountId: string,
  key: string,
  output: DescMessage,
  run: () => Promise<Message>,
): Promise<Message> {
  try {
    const answer = await run();
    await store.keepAnswer(accountId, key, toBinary(output, answer));
    return answer;
  } catch (thrown) {
    const { status } = thrown instanceof Failure ? errorTable[thrown.slug] : { status: 500 };
    if (thrown instanceof Failure && status < 500 && status !== 429) {
      await store.keepFailure(accountId, key, thrown);
    } else {
      await store.forget(accountId, key);
    }
    throw thrown;
  }
}
