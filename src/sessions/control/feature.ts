import type { Feature } from "../../kernel/feature.ts";
import type { Controls } from "./control.ts";
import { type ControlNotifierParts, createControlNotifier } from "./control-notifier.ts";

/** Milliseconds between sweeps of expired control. */
const pollEvery = 1_000;

export interface ControlFeatureParts extends ControlNotifierParts {
  readonly controls: Controls;
}

export const control = {
  create: (parts: ControlFeatureParts) => ({
    jobKinds: [createControlNotifier(parts)],
    jobs: [
      {
        run: () => parts.controls.sweep(),
        every: pollEvery,
        complaint: "failed to release expired control leases",
      },
    ],
  }),
} satisfies Feature<ControlFeatureParts>;
