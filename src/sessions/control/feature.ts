import type { Feature } from "../../kernel/feature.ts";
import type { Controls } from "./control.ts";
import { type ControlNotifierParts, createControlNotifier } from "./control-notifier.ts";

export interface ControlFeatureParts extends ControlNotifierParts {
  readonly controls: Controls;
}

export const control = {
  create: (parts: ControlFeatureParts) => ({
    jobKinds: [createControlNotifier(parts)],
    dueTasks: [parts.controls.sweep],
  }),
} satisfies Feature<ControlFeatureParts>;
