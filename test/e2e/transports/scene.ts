import type { FixtureSite } from "../../support/fixture-site.ts";
import type { Service } from "../../support/service.ts";
import type { OtherOrigin } from "../support/other-origin.ts";

export interface Scene {
  readonly service: Service;
  /** Pages that sessions may load. */
  readonly site: FixtureSite;
  /** Page of an origin in CORS_ORIGINS, in a separate browser. */
  readonly page: OtherOrigin;
  /** Live session, for tests that do not change its state. */
  readonly sessionId: string;
}

export type GetScene = () => Scene;
