import type { Message } from "@bufbuild/protobuf";
import type { App } from "../../src/app/app.ts";
import type { MethodRules } from "../../src/gen/pilothouse/v1/options_pb.ts";
import type { ServedMethod } from "../../src/kernel/registry.ts";
import type { ErrorSlug } from "../../src/platform/error-table.ts";
import type { GatewayCall } from "../gateway-call.ts";
import type { AddressBucket } from "./address-bucket.ts";
import type { RunOnce } from "./idempotency-policy.ts";

/** A method option of options.proto, in camel case. */
export type MethodOption = Exclude<keyof MethodRules, "$typeName" | "$unknown">;

/** Dependencies of policies. */
export interface PolicyParts
  extends Pick<App, "apiKeys" | "audit" | "bearers" | "buckets" | "streamSlots" | "clock" | "legal" | "limits"> {
  readonly addresses: AddressBucket;
  readonly runOnce: RunOnce;
}

interface PolicyBase {
  readonly name: string;
  /** Method options that the policy enforces. */
  readonly enforces: readonly MethodOption[];
  /** Returns whether the policy applies to a method. */
  appliesTo(served: ServedMethod): boolean;
  /** Returns the problems that the policy may raise for a method. The OpenAPI document lists them. */
  problems(served: ServedMethod): readonly ErrorSlug[];
  /** Returns the requirement for callers of a method as sentences for the API reference. */
  describe?(served: ServedMethod): string;
}

/** Runs on headers, before the message is read. Throws if it refuses. */
export interface AdmissionPolicy extends PolicyBase {
  /** Returns a promise only if it must wait, so that calls of known callers run synchronously. */
  admit(call: GatewayCall, parts: PolicyParts): void | Promise<void>;
}

/** Checks a message of a call or a stream. Throws if it refuses. */
export interface MessagePolicy extends PolicyBase {
  check(served: ServedMethod, message: Message): void;
}

/** Wraps a unary method, and may return a response without running the method. */
export interface RunPolicy extends PolicyBase {
  around(call: GatewayCall, request: Message, run: () => Promise<Message>, parts: PolicyParts): Promise<Message>;
}

/** A policy between transports and methods. A policy with only a `PolicyBase` is enforced in `createOpenStreams`. */
export type Policy = PolicyBase | AdmissionPolicy | MessagePolicy | RunPolicy;
