import type { DescMessage } from "@bufbuild/protobuf";
import { Idempotency } from "../src/gen/pilothouse/v1/options_pb.ts";
import type { ServedMethod } from "../src/registry.ts";
import { httpRouteOf } from "./rest/http-rule.ts";

/** Says whether a method keeps its answers for an Idempotency-Key: any POST that changes the account's things. */
export function keepsAnswers({ kind, method, rules }: ServedMethod): boolean {
  const isPost = kind === "unary" && httpRouteOf(method)?.verb === "POST";
  return isPost && !rules.public && rules.idempotency === Idempotency.UNSPECIFIED;
}

/** Says whether an answer may hold a secret: such a one is kept only where it can be sealed. */
export function holdsSecrets(message: DescMessage, seen = new Set<DescMessage>()): boolean {
  if (seen.has(message)) return false;
  seen.add(message);
  return message.fields.some((field) => {
    const inner = field.fieldKind === "scalar" || field.fieldKind === "enum" ? undefined : field.message;
    return field.proto.options?.debugRedact === true || (inner !== undefined && holdsSecrets(inner, seen));
  });
}
