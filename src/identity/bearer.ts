import type { BearerKind, BearerToken } from "../kernel/bearer-kind.ts";

/** A bearer with its kind. */
export interface Bearer extends BearerToken {
  readonly kind: BearerKind;
}
