import type { Message } from "@bufbuild/protobuf";
import type { App } from "../../src/app/app.ts";
import type { MethodRules } from "../../src/gen/pilothouse/v1/options_pb.ts";
import type { ServedMethod } from "../../src/kernel/registry.ts";
import type { ErrorSlug } from "../../src/platform/error-table.ts";
import type { GatewayCall } from "../call.ts";
import type { AddressBucket } from "./address-bucket.ts";
import type { RunOnce } from "./idempotency.ts";

/** An option of a method, as options.proto names it in camel case. */
export type MethodOption = Exclude<keyof MethodRules, "$typeName" | "$unknown">;

/** What policies ask. */
export interface PolicyParts
  extends Pick<App, "apiKeys" | "audit" | "bearers" | "buckets" | "seats" | "clock" | "legal" | "limits"> {
  readonly addresses: AddressBucket;
  readonly runOnce: RunOnce;
}

interface PolicyBase {
  readonly name: string;
  /** The options of a method that it makes true. */
  readonly enforces: readonly MethodOption[];
  /** Says whether it has anything to do with a method; it is not run for others. */
  concerns(served: ServedMethod): boolean;
  /** The problems that it can answer to a call of a method that concerns it. The OpenAPI document is made from them. */
  refuses(served: ServedMethod): readonly ErrorSlug[];
  /** What it asks of the caller of a method that concerns it, in a sentence for the reference page. */
  tells?(served: ServedMethod): string;
}

/** Runs before the message of a call is read, on headers alone. Throws what it refuses. */
export interface AdmissionPolicy extends PolicyBase {
  /** Gives a promise only where it has to wait: a call whose caller is known waits for nothing. */
  admit(call: GatewayCall, parts: PolicyParts): void | Promise<void>;
}

/** Looks at a message, be it that of a call or one of a stream. Throws what it refuses. */
export interface MessagePolicy extends PolicyBase {
  check(served: ServedMethod, message: Message): void;
}

/** Runs a unary method, or answers in its place. */
export interface RunPolicy extends PolicyBase {
  around(call: GatewayCall, request: Message, run: () => Promise<Message>, parts: PolicyParts): Promise<Message>;
}

/** One of the things that stand between a transport and the methods; a bare one is carried out where streams are run. */
export type Policy = PolicyBase | AdmissionPolicy | MessagePolicy | RunPolicy;
