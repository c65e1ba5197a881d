import type { Feature } from "../../kernel/feature.ts";
import type { Controls } from "./control.ts";
import { createTelling, type TellingParts } from "./telling.ts";

/** Milliseconds between sweeps of expired control. */
const lookEvery = 1_000;

export interface ControlFeatureParts extends TellingParts {
  readonly controls: Controls;
}

export const control = {
  create: (parts: ControlFeatureParts) => ({
    works: [createTelling(parts)],
    jobs: [
      {
        run: () => parts.controls.sweep(),
        every: lookEvery,
        complaint: "failed to release expired control leases",
      },
    ],
  }),
} satisfies Feature<ControlFeatureParts>;
