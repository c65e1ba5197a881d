import { expect, test } from "vitest";
import type { GatewayCall } from "../../gateway/gateway-call.ts";
import { createMessageAllowances } from "../../gateway/policies/message-allowance.ts";
import { systemClock } from "../../src/platform/clock.ts";

const mebibyte = 2 ** 20;

const callOf = (accountId: string | undefined, signal = AbortSignal.timeout(60_000)): GatewayCall =>
  ({ accountId, signal }) as GatewayCall;

test("an account may send 4 MiB at once, then waits, and delays nobody else", async () => {
  const awaitAllowance = createMessageAllowances(systemClock);
  const over = new AbortController();
  const one = callOf("acc_1", over.signal);
  for (let sent = 0; sent < 4; sent++) expect(awaitAllowance(one, mebibyte)).toBeUndefined();
  const waiting = awaitAllowance(one, mebibyte);
  expect(waiting).toBeInstanceOf(Promise);
  expect(awaitAllowance(one, 16 * 1024 - 1)).toBeUndefined();
  expect(awaitAllowance(callOf("acc_2"), mebibyte)).toBeUndefined();
  expect(awaitAllowance(callOf(undefined), mebibyte)).toBeUndefined();
  over.abort();
  await waiting;
});
