import { Idempotency } from "../src/gen/pilothouse/v1/options_pb.ts";
import type { ServedMethod } from "../src/registry.ts";
import { httpRouteOf } from "./rest/http-rule.ts";

/** Says whether a method keeps its answers for an Idempotency-Key: any POST that changes the account's things. */
export function keepsAnswers({ kind, method, rules }: ServedMethod): boolean {
  const isPost = kind === "unary" && httpRouteOf(method)?.verb === "POST";
  return isPost && !rules.public && rules.idempotency === Idempotency.UNSPECIFIED;
}
