import type { Feature } from "../feature.ts";
import type { ApiKeys } from "./api-keys.ts";
import { keyBearers } from "./key-bearer.ts";

/** Milliseconds between two looks for keys that have expired. */
const sweepEvery = 60_000;

export const apiKeys: Feature<{ readonly apiKeys: ApiKeys }> = {
  bearers: keyBearers,
  create: ({ apiKeys: { sweep } }) => ({
    jobs: [{ run: sweep, every: sweepEvery, complaint: "expired keys cannot be swept at the moment" }],
  }),
};
