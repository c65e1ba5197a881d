import type { FixtureSite } from "../../support/fixture-site.ts";
import type { WarmService } from "../../support/warm-service.ts";
import type { OtherOrigin } from "../support/other-origin.ts";

export interface Scene {
  readonly service: WarmService;
  /** Lines that the service has printed. */
  readonly welcome: string;
  /** Pages that sessions may load. */
  readonly site: FixtureSite;
  /** Page of an origin in CORS_ORIGINS, in a separate browser. */
  readonly page: OtherOrigin;
  /** Live session, for tests that do not change its state. */
  readonly sessionId: string;
}

export type GetScene = () => Scene;
