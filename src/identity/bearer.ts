import type { BearerKind, BearerToken } from "../kernel/bearer-kind.ts";

/** A bearer of a kind that this service has. */
export interface Bearer extends BearerToken {
  readonly kind: BearerKind;
}
