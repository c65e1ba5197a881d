import type { Feature } from "../feature.ts";
import { loginBearers } from "./login-bearer.ts";
import type { Logins } from "./logins.ts";
import { loginMigrations } from "./tables.ts";

/** Milliseconds between two looks for logins that have expired. */
const sweepEvery = 600_000;

export const logins: Feature<{ readonly logins: Logins }> = {
  bearers: loginBearers,
  migrations: loginMigrations,
  create: ({ logins: { sweep } }) => ({
    jobs: [{ run: sweep, every: sweepEvery, complaint: "expired logins cannot be swept at the moment" }],
  }),
};
