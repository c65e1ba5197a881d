import { validate } from "../../src/platform/validation.ts";
import type { MessagePolicy } from "./policy.ts";

/** Refuses a message that breaks the rules of its proto. */
export const validation: MessagePolicy = {
  name: "validation",
  enforces: [],
  concerns: () => true,
  refuses: () => ["bad-request", "validation-failed"],
  check: ({ method }, message) => validate(method.input, message),
};
