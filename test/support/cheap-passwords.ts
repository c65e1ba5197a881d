import type { PasswordOptions } from "../../src/auth/passwords/passwords.ts";
import { createStrengthJudge } from "../../src/auth/passwords/strength.ts";

/** Cheap hashes, and one judge for all apps of this process. */
export const cheapPasswords = {
  cost: { memoryCost: 64, timeCost: 1, parallelism: 1 },
  judge: createStrengthJudge(),
} as const satisfies PasswordOptions;
