import type { PasswordOptions } from "../../src/auth/passwords/passwords.ts";
import { createStrengthEstimator } from "../../src/auth/passwords/strength.ts";

/** Cheap hashes, and one estimator for all apps of this process. */
export const cheapPasswords = {
  cost: { memoryCost: 64, timeCost: 1, parallelism: 1 },
  estimate: createStrengthEstimator(),
} as const satisfies PasswordOptions;
