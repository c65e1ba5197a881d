import type { Migrations } from "../platform/postgres/schema.ts";

/** Revisions of the terms, published by the operator. */
interface TermsRevisionsTable {
  id: string;
  url: string;
  published_at: Date;
  effective_at: Date;
  /** When owners were notified by e-mail; null: not yet. */
  told_at: Date | null;
}

interface TermsAcceptancesTable {
  account_id: string;
  revision_id: string;
  accepted_at: Date;
}

declare module "../platform/postgres/schema.ts" {
  interface Schema {
    terms_revisions: TermsRevisionsTable;
    terms_acceptances: TermsAcceptancesTable;
  }
}

export const legalMigrations: Migrations = {
  "018-terms": [
    `create table terms_revisions (
      id text primary key,
      url text not null,
      published_at timestamptz not null,
      effective_at timestamptz not null unique,
      told_at timestamptz
    )`,
    `create table terms_acceptances (
      account_id text not null references accounts (id) on delete cascade,
      revision_id text not null references terms_revisions (id),
      accepted_at timestamptz not null,
      primary key (account_id, revision_id)
    )`,
  ],
};
