import { createHash } from "node:crypto";
import { type Message, toBinary } from "@bufbuild/protobuf";
import type { App } from "../../src/app/app.ts";
import { Idempotency } from "../../src/gen/pilothouse/v1/options_pb.ts";
import type { MethodAttempt } from "../../src/kernel/call.ts";
import { failFields } from "../../src/platform/errors.ts";
import type { GatewayCall } from "../gateway-call.ts";

const longestKey = 255;

/** Runs a unary method, or returns the stored response of its idempotency key. */
export type RunOnce = (call: GatewayCall, request: Message, run: () => Promise<Message>) => Promise<Message>;

/** Creates the policy of the Idempotency-Key header. */
export function createIdempotencyPolicy({ idempotency }: App): RunOnce {
  return (call, request, run) => {
    const { served, idempotencyKey: key } = call;
    if (key !== undefined && (served.keepsAnswers || served.rules.idempotency === Idempotency.WORKER)) assertKey(key);
    if (!served.keepsAnswers) return run();
    const work = (attempt: MethodAttempt): Promise<Message> => {
      call.attempt = attempt;
      return run();
    };
    if (key === undefined) return idempotency.once(work);
    const { input, output, parent, name } = served.method;
    const hash = createHash("sha256").update(`${parent.typeName}/${name}\n`).update(toBinary(input, request)).digest();
    const { principal } = call;
    // A stored response is returned only to the original caller: the same API key, or the same user with any login.
    const caller = principal.kind === "key" ? principal.keyId : principal.userId;
    const { accountId } = principal;
    const repeatable = {
      accountId,
      caller,
      key,
      hash,
      output,
      onReplay: () => call.markReplayed(),
    };
    return idempotency.repeatable(repeatable, work);
  };
}

function assertKey(key: string): void {
  if (key.length === 0 || key.length > longestKey) {
    throw failFields("bad-request", { "Idempotency-Key": `must have 1 to ${longestKey} characters` });
  }
}
