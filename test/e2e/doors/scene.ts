import type { FixtureSite } from "../../support/fixture-site.ts";
import type { Service } from "../../support/service.ts";
import type { OtherOrigin } from "../support/other-origin.ts";

/** What the tests of all doors share. */
export interface Scene {
  readonly service: Service;
  /** Pages that sessions may reach. */
  readonly site: FixtureSite;
  /** A page of an origin of CORS_ORIGINS, in a browser of its own. */
  readonly page: OtherOrigin;
  /** A live session for what leaves it as good as it was. */
  readonly sessionId: string;
}

/** Gives the scene once it is set up. */
export type GetScene = () => Scene;
