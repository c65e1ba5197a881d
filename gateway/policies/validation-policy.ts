import { validate } from "../../src/platform/validation.ts";
import type { MessagePolicy } from "./policy.ts";

/** Refuses messages that violate the rules of their proto. */
export const validation: MessagePolicy = {
  name: "validation",
  enforces: [],
  appliesTo: () => true,
  problems: () => ["bad-request", "validation-failed"],
  check: ({ method }, message) => validate(method.input, message),
};
