import type { Generated } from "kysely";
import type { Migrations } from "../../platform/postgres/schema.ts";

/** Links with which people watch sessions. */
interface ViewLinksTable {
  id: string;
  session_id: string;
  made_by: string;
  secret_hash: Buffer;
  name: string;
  control: boolean;
  created_at: Generated<Date>;
  expires_at: Date;
  revoked_at: Date | null;
  /** Client name of the viewer, for a single-viewer link. */
  client_id: string | null;
  /** Deadline for the first visit of a single-viewer link; null afterwards, and for other links. */
  opens_until: Date | null;
  /** Hash of the viewer's secret, set by the first visit of a single-viewer link. */
  viewer_hash: Buffer | null;
}

export const viewLinkMigrations: Migrations = {
  "007-view-links": [
    `create table view_links (
      id text primary key,
      session_id text not null references sessions (id) on delete cascade,
      made_by text not null,
      secret_hash bytea not null,
      name text not null,
      control boolean not null,
      created_at timestamptz not null default date_trunc('milliseconds', app_now()),
      expires_at timestamptz not null,
      revoked_at timestamptz,
      client_id text,
      opens_until timestamptz,
      viewer_hash bytea
    )`,
    "create index view_links_session on view_links (session_id, id desc)",
  ],
};

declare module "../../platform/postgres/schema.ts" {
  interface Schema {
    view_links: ViewLinksTable;
  }
}
