-- Schema after all migrations. Written by `npm run accept-contract` from the catalog of a migrated database;
-- test/platform/schema.test.ts compares it. Tables, then sequences and functions, each in order of creation.

CREATE TABLE accounts (
  id text NOT NULL,
  name text NOT NULL,
  tier text NOT NULL,
  arranged_tier text,
  developer boolean NOT NULL DEFAULT false,
  created_at timestamp with time zone NOT NULL DEFAULT app_now(),
  overrides jsonb NOT NULL DEFAULT '[]'::jsonb,
  disabled_at timestamp with time zone,
  deletes_at timestamp with time zone,
  session_logs text,
  CONSTRAINT accounts_pkey PRIMARY KEY (id)
);
CREATE UNIQUE INDEX accounts_developer ON accounts USING btree (developer) WHERE developer;
CREATE INDEX accounts_deletion ON accounts USING btree (deletes_at) WHERE (deletes_at IS NOT NULL);

CREATE TABLE users (
  id text NOT NULL,
  email text NOT NULL,
  name text NOT NULL,
  password_hash text,
  email_verified_at timestamp with time zone,
  created_at timestamp with time zone NOT NULL,
  pending_account_id text,
  pending_account_name text,
  pending_invite bytea,
  pending_revision text,
  pending_contested boolean NOT NULL DEFAULT false,
  totp_seed bytea,
  totp_begun_at timestamp with time zone,
  totp_enrolled_at timestamp with time zone,
  totp_counter bigint,
  CONSTRAINT users_pkey PRIMARY KEY (id),
  CONSTRAINT users_email_key UNIQUE (email)
);
CREATE INDEX users_pending ON users USING btree (created_at) WHERE (email_verified_at IS NULL);

CREATE TABLE memberships (
  id text NOT NULL,
  account_id text NOT NULL,
  user_id text NOT NULL,
  role text NOT NULL,
  created_at timestamp with time zone NOT NULL,
  CONSTRAINT memberships_role_check CHECK ((role = ANY (ARRAY['owner'::text, 'admin'::text, 'member'::text]))),
  CONSTRAINT memberships_account_id_fkey FOREIGN KEY (account_id) REFERENCES accounts(id),
  CONSTRAINT memberships_user_id_fkey FOREIGN KEY (user_id) REFERENCES users(id),
  CONSTRAINT memberships_pkey PRIMARY KEY (id),
  CONSTRAINT memberships_account_id_user_id_key UNIQUE (account_id, user_id)
);
CREATE INDEX memberships_user ON memberships USING btree (user_id, created_at);

CREATE TABLE api_keys (
  id text NOT NULL,
  account_id text NOT NULL,
  name text NOT NULL,
  secret_hash bytea NOT NULL,
  scopes text[] NOT NULL,
  created_at timestamp with time zone NOT NULL DEFAULT app_now(),
  expires_at timestamp with time zone,
  revoked_at timestamp with time zone,
  created_by text,
  created_by_key text,
  addresses text[] NOT NULL DEFAULT '{}'::text[],
  last_used_at timestamp with time zone,
  rotated_to text,
  CONSTRAINT api_keys_account_id_fkey FOREIGN KEY (account_id) REFERENCES accounts(id),
  CONSTRAINT api_keys_pkey PRIMARY KEY (id)
);
CREATE INDEX api_keys_account ON api_keys USING btree (account_id, id);
CREATE INDEX api_keys_expiry ON api_keys USING btree (expires_at) WHERE ((revoked_at IS NULL) AND (expires_at IS NOT NULL));

CREATE TABLE key_tokens (
  id text NOT NULL,
  key_id text NOT NULL,
  secret_hash bytea NOT NULL,
  scopes text[] NOT NULL,
  expires_at timestamp with time zone NOT NULL,
  CONSTRAINT key_tokens_key_id_fkey FOREIGN KEY (key_id) REFERENCES api_keys(id) ON DELETE CASCADE,
  CONSTRAINT key_tokens_pkey PRIMARY KEY (id)
);
CREATE INDEX key_tokens_key ON key_tokens USING btree (key_id);
CREATE INDEX key_tokens_age ON key_tokens USING btree (expires_at);

CREATE TABLE workers (
  id text NOT NULL,
  secret_hash bytea NOT NULL,
  address text NOT NULL,
  runtimes text[] NOT NULL,
  slots integer NOT NULL,
  isolation text NOT NULL,
  unsandboxed boolean NOT NULL DEFAULT false,
  boot_id text NOT NULL,
  release text NOT NULL DEFAULT ''::text,
  registered_at timestamp with time zone NOT NULL DEFAULT app_now(),
  pool text NOT NULL DEFAULT 'default'::text,
  CONSTRAINT workers_pkey PRIMARY KEY (id),
  CONSTRAINT workers_boot_id_key UNIQUE (boot_id)
);

CREATE TABLE worker_leases (
  worker_id text NOT NULL,
  incarnation bigint NOT NULL,
  draining boolean NOT NULL DEFAULT false,
  closed_by text,
  launches_fail boolean NOT NULL DEFAULT false,
  lease_until timestamp with time zone NOT NULL,
  heard_at timestamp with time zone,
  lost_at timestamp with time zone,
  drain_incarnation bigint,
  has_left boolean NOT NULL DEFAULT false,
  CONSTRAINT worker_leases_worker_id_fkey FOREIGN KEY (worker_id) REFERENCES workers(id) ON DELETE CASCADE,
  CONSTRAINT worker_leases_pkey PRIMARY KEY (worker_id)
);
CREATE INDEX worker_leases_present ON worker_leases USING btree (worker_id) WHERE (lost_at IS NULL);

CREATE TABLE lease_sweep (
  id boolean NOT NULL DEFAULT true,
  swept_at timestamp with time zone NOT NULL,
  CONSTRAINT lease_sweep_id_check CHECK (id),
  CONSTRAINT lease_sweep_pkey PRIMARY KEY (id)
);

CREATE TABLE sessions (
  id text NOT NULL,
  account_id text NOT NULL,
  status text NOT NULL,
  archetype text NOT NULL,
  runtime text NOT NULL,
  profile_id text,
  proxy_server text,
  proxy_username text,
  locale text,
  timezone text,
  viewport_width integer,
  viewport_height integer,
  viewport_scale double precision,
  labels jsonb NOT NULL,
  idle_timeout_seconds integer NOT NULL,
  created_at timestamp with time zone NOT NULL DEFAULT app_now(),
  live_at timestamp with time zone,
  ended_at timestamp with time zone,
  ended_reason text,
  pause_reason text,
  expires_at timestamp with time zone NOT NULL,
  provision_by timestamp with time zone NOT NULL,
  worker_id text NOT NULL,
  placement_epoch bigint NOT NULL,
  control_epoch bigint NOT NULL DEFAULT 0,
  control_holder text,
  control_lapses_at timestamp with time zone,
  control_input_at timestamp with time zone,
  agent_session_id text,
  tier text NOT NULL,
  slot_held boolean NOT NULL DEFAULT true,
  connect_name text,
  timeouts_number integer NOT NULL DEFAULT 0,
  options jsonb NOT NULL DEFAULT '{}'::jsonb,
  logs text,
  made_by text,
  CONSTRAINT sessions_check CHECK (((status = ANY (ARRAY['destroyed'::text, 'errored'::text])) = ((ended_at IS NOT NULL) AND (ended_reason IS NOT NULL)))),
  CONSTRAINT sessions_status_check CHECK ((status = ANY (ARRAY['provisioning'::text, 'live'::text, 'paused'::text, 'destroyed'::text, 'errored'::text]))),
  CONSTRAINT sessions_account_id_fkey FOREIGN KEY (account_id) REFERENCES accounts(id),
  CONSTRAINT sessions_worker_id_fkey FOREIGN KEY (worker_id) REFERENCES workers(id),
  CONSTRAINT sessions_pkey PRIMARY KEY (id)
);
CREATE INDEX sessions_account ON sessions USING btree (account_id, id DESC);
CREATE INDEX sessions_account_status ON sessions USING btree (account_id, status, id DESC);
CREATE INDEX sessions_slot ON sessions USING btree (worker_id) WHERE slot_held;
CREATE INDEX sessions_running ON sessions USING btree (account_id) WHERE (status = ANY (ARRAY['provisioning'::text, 'live'::text, 'paused'::text]));
CREATE INDEX sessions_provisioning ON sessions USING btree (provision_by) WHERE (status = 'provisioning'::text);
CREATE INDEX sessions_running_by_worker ON sessions USING btree (worker_id) WHERE (status = ANY (ARRAY['provisioning'::text, 'live'::text, 'paused'::text]));
CREATE INDEX sessions_expiry ON sessions USING btree (expires_at) WHERE (status = ANY (ARRAY['provisioning'::text, 'live'::text, 'paused'::text]));
CREATE INDEX sessions_control ON sessions USING btree (control_lapses_at) WHERE ((control_holder IS NOT NULL) AND (status = ANY (ARRAY['live'::text, 'paused'::text])));
CREATE UNIQUE INDEX sessions_connect_name ON sessions USING btree (account_id, connect_name) WHERE ((connect_name IS NOT NULL) AND (status = ANY (ARRAY['provisioning'::text, 'live'::text, 'paused'::text])));

CREATE TABLE cdp_tokens (
  id text NOT NULL,
  session_id text NOT NULL,
  made_by text NOT NULL,
  secret_hash bytea NOT NULL,
  created_at timestamp with time zone NOT NULL DEFAULT app_now(),
  opens_until timestamp with time zone NOT NULL,
  revoked_at timestamp with time zone,
  CONSTRAINT cdp_tokens_session_id_fkey FOREIGN KEY (session_id) REFERENCES sessions(id) ON DELETE CASCADE,
  CONSTRAINT cdp_tokens_pkey PRIMARY KEY (id)
);
CREATE INDEX cdp_tokens_session ON cdp_tokens USING btree (session_id);

CREATE TABLE view_links (
  id text NOT NULL,
  session_id text NOT NULL,
  made_by text NOT NULL,
  secret_hash bytea NOT NULL,
  name text NOT NULL,
  control boolean NOT NULL,
  created_at timestamp with time zone NOT NULL DEFAULT date_trunc('milliseconds'::text, app_now()),
  expires_at timestamp with time zone NOT NULL,
  revoked_at timestamp with time zone,
  client_id text,
  opens_until timestamp with time zone,
  viewer_hash bytea,
  CONSTRAINT view_links_session_id_fkey FOREIGN KEY (session_id) REFERENCES sessions(id) ON DELETE CASCADE,
  CONSTRAINT view_links_pkey PRIMARY KEY (id)
);
CREATE INDEX view_links_session ON view_links USING btree (session_id, id DESC);

CREATE TABLE events (
  "position" bigint GENERATED ALWAYS AS IDENTITY,
  number bigint,
  id text NOT NULL,
  account_id text NOT NULL,
  type text NOT NULL,
  subject text NOT NULL,
  data jsonb NOT NULL,
  created_at timestamp with time zone NOT NULL DEFAULT app_now(),
  placement_epoch bigint,
  incarnation bigint,
  sequence bigint,
  CONSTRAINT events_account_id_fkey FOREIGN KEY (account_id) REFERENCES accounts(id),
  CONSTRAINT events_pkey PRIMARY KEY ("position"),
  CONSTRAINT events_id_key UNIQUE (id)
);
CREATE UNIQUE INDEX events_worker_key ON events USING btree (subject, placement_epoch, incarnation, sequence) WHERE (sequence IS NOT NULL);
CREATE INDEX events_unnumbered ON events USING btree ("position") WHERE (number IS NULL);
CREATE UNIQUE INDEX events_number ON events USING btree (number) WHERE (number IS NOT NULL);
CREATE INDEX events_subject_number ON events USING btree (subject, number) WHERE (number IS NOT NULL);
CREATE INDEX events_account_number ON events USING btree (account_id, number) WHERE (number IS NOT NULL);
CREATE INDEX events_account_type ON events USING btree (account_id, type, number) WHERE (number IS NOT NULL);

CREATE TABLE event_cursors (
  consumer text NOT NULL,
  number bigint NOT NULL,
  moved_at timestamp with time zone NOT NULL DEFAULT app_now(),
  CONSTRAINT event_cursors_pkey PRIMARY KEY (consumer)
);

CREATE TABLE idempotency_keys (
  account_id text NOT NULL,
  key text NOT NULL,
  caller text NOT NULL DEFAULT ''::text,
  request_hash bytea NOT NULL,
  seed text NOT NULL DEFAULT ''::text,
  epoch bigint NOT NULL DEFAULT 1,
  beat_at timestamp with time zone NOT NULL DEFAULT app_now(),
  answer bytea,
  failure bytea,
  created_at timestamp with time zone NOT NULL DEFAULT app_now(),
  CONSTRAINT idempotency_keys_account_id_fkey FOREIGN KEY (account_id) REFERENCES accounts(id),
  CONSTRAINT idempotency_keys_pkey PRIMARY KEY (account_id, key)
);
CREATE INDEX idempotency_keys_age ON idempotency_keys USING btree (created_at);

CREATE TABLE job_queues (
  kind text NOT NULL,
  queue text NOT NULL,
  owner text,
  due_at timestamp with time zone NOT NULL,
  latest_at timestamp with time zone NOT NULL,
  failures integer NOT NULL DEFAULT 0,
  claim bigint,
  leased_until timestamp with time zone,
  CONSTRAINT job_queues_pkey PRIMARY KEY (kind, queue)
);
CREATE INDEX job_queues_free ON job_queues USING btree (kind, due_at) WHERE (claim IS NULL);
CREATE INDEX job_queues_held ON job_queues USING btree (claim) WHERE (claim IS NOT NULL);

CREATE TABLE jobs (
  id bigint GENERATED ALWAYS AS IDENTITY,
  kind text NOT NULL,
  queue text NOT NULL,
  data jsonb NOT NULL,
  order_key text,
  due_at timestamp with time zone NOT NULL,
  attempts integer NOT NULL DEFAULT 0,
  complaint text,
  created_at timestamp with time zone NOT NULL DEFAULT app_now(),
  dead_at timestamp with time zone,
  CONSTRAINT jobs_pkey PRIMARY KEY (id)
);
CREATE INDEX jobs_queue ON jobs USING btree (kind, queue, due_at, id) WHERE (dead_at IS NULL);
CREATE INDEX jobs_dead ON jobs USING btree (kind, dead_at) WHERE (dead_at IS NOT NULL);

CREATE TABLE audit_entries (
  id text NOT NULL,
  account_id text NOT NULL,
  action text NOT NULL,
  actor_kind text NOT NULL,
  actor_id text,
  actor_name text,
  subject text NOT NULL,
  data jsonb NOT NULL,
  request_id text,
  client_address text,
  user_agent text,
  CONSTRAINT audit_entries_actor_kind_check CHECK ((actor_kind = ANY (ARRAY['user'::text, 'key'::text, 'operator'::text, 'service'::text]))),
  CONSTRAINT audit_entries_account_id_fkey FOREIGN KEY (account_id) REFERENCES accounts(id),
  CONSTRAINT audit_entries_pkey PRIMARY KEY (id)
);
CREATE INDEX audit_entries_account ON audit_entries USING btree (account_id, id);
CREATE INDEX audit_entries_action ON audit_entries USING btree (account_id, action, id);
CREATE INDEX audit_entries_actor ON audit_entries USING btree (account_id, actor_id, id);
CREATE INDEX audit_entries_subject ON audit_entries USING btree (account_id, subject, id);

CREATE TABLE throttles (
  name text NOT NULL,
  tries timestamp with time zone[] NOT NULL,
  until timestamp with time zone NOT NULL,
  CONSTRAINT throttles_pkey PRIMARY KEY (name)
);
CREATE INDEX throttles_age ON throttles USING btree (until);

CREATE TABLE logins (
  id text NOT NULL,
  user_id text NOT NULL,
  created_at timestamp with time zone NOT NULL,
  last_used_at timestamp with time zone NOT NULL,
  ends_at timestamp with time zone NOT NULL,
  ended_at timestamp with time zone,
  client_address text NOT NULL,
  user_agent text NOT NULL,
  CONSTRAINT logins_user_id_fkey FOREIGN KEY (user_id) REFERENCES users(id) ON DELETE CASCADE,
  CONSTRAINT logins_pkey PRIMARY KEY (id)
);
CREATE INDEX logins_user ON logins USING btree (user_id, id DESC);
CREATE INDEX logins_age ON logins USING btree (last_used_at);

CREATE TABLE login_tokens (
  id text NOT NULL,
  login_id text NOT NULL,
  account_id text NOT NULL,
  access_hash bytea NOT NULL,
  refresh_hash bytea NOT NULL,
  access_expires_at timestamp with time zone NOT NULL,
  refresh_expires_at timestamp with time zone NOT NULL,
  stepped_up_at timestamp with time zone,
  spent_at timestamp with time zone,
  successor_id text,
  seed bytea,
  CONSTRAINT login_tokens_account_id_fkey FOREIGN KEY (account_id) REFERENCES accounts(id),
  CONSTRAINT login_tokens_login_id_fkey FOREIGN KEY (login_id) REFERENCES logins(id) ON DELETE CASCADE,
  CONSTRAINT login_tokens_pkey PRIMARY KEY (id)
);
CREATE INDEX login_tokens_login ON login_tokens USING btree (login_id);
CREATE INDEX login_tokens_age ON login_tokens USING btree (refresh_expires_at);

CREATE TABLE devices (
  user_id text NOT NULL,
  network text NOT NULL,
  family text NOT NULL,
  last_login_at timestamp with time zone NOT NULL,
  CONSTRAINT devices_user_id_fkey FOREIGN KEY (user_id) REFERENCES users(id) ON DELETE CASCADE,
  CONSTRAINT devices_pkey PRIMARY KEY (user_id, network, family)
);

CREATE TABLE mail_tokens (
  hash bytea NOT NULL,
  kind text NOT NULL,
  user_id text NOT NULL,
  email text NOT NULL,
  expires_at timestamp with time zone NOT NULL,
  login_id text,
  account_id text,
  CONSTRAINT mail_tokens_user_id_fkey FOREIGN KEY (user_id) REFERENCES users(id) ON DELETE CASCADE,
  CONSTRAINT mail_tokens_pkey PRIMARY KEY (hash)
);
CREATE INDEX mail_tokens_user ON mail_tokens USING btree (user_id);
CREATE INDEX mail_tokens_age ON mail_tokens USING btree (expires_at);

CREATE TABLE recovery_codes (
  user_id text NOT NULL,
  hash bytea NOT NULL,
  CONSTRAINT recovery_codes_user_id_fkey FOREIGN KEY (user_id) REFERENCES users(id) ON DELETE CASCADE,
  CONSTRAINT recovery_codes_pkey PRIMARY KEY (user_id, hash)
);

CREATE TABLE factor_removals (
  user_id text NOT NULL,
  due_at timestamp with time zone,
  CONSTRAINT factor_removals_user_id_fkey FOREIGN KEY (user_id) REFERENCES users(id) ON DELETE CASCADE,
  CONSTRAINT factor_removals_pkey PRIMARY KEY (user_id)
);

CREATE TABLE mails (
  id text NOT NULL,
  user_id text,
  kind text NOT NULL,
  content bytea NOT NULL,
  created_at timestamp with time zone NOT NULL DEFAULT app_now(),
  CONSTRAINT mails_pkey PRIMARY KEY (id)
);
CREATE INDEX mails_created ON mails USING btree (created_at);

CREATE TABLE mail_preferences (
  user_id text NOT NULL,
  product_updates boolean NOT NULL,
  usage_alerts boolean NOT NULL,
  webhook_failures boolean NOT NULL,
  team_activity boolean NOT NULL,
  updated_at timestamp with time zone NOT NULL,
  CONSTRAINT mail_preferences_user_id_fkey FOREIGN KEY (user_id) REFERENCES users(id) ON DELETE CASCADE,
  CONSTRAINT mail_preferences_pkey PRIMARY KEY (user_id)
);

CREATE TABLE invites (
  id text NOT NULL,
  account_id text NOT NULL,
  email text NOT NULL,
  role text NOT NULL,
  token_hash bytea NOT NULL,
  invited_by text,
  invited_by_key text,
  created_at timestamp with time zone NOT NULL,
  expires_at timestamp with time zone NOT NULL,
  accepted_at timestamp with time zone,
  revoked_at timestamp with time zone,
  sent_at timestamp with time zone[] NOT NULL,
  CONSTRAINT invites_role_check CHECK ((role = ANY (ARRAY['admin'::text, 'member'::text]))),
  CONSTRAINT invites_account_id_fkey FOREIGN KEY (account_id) REFERENCES accounts(id) ON DELETE CASCADE,
  CONSTRAINT invites_invited_by_fkey FOREIGN KEY (invited_by) REFERENCES users(id) ON DELETE SET NULL,
  CONSTRAINT invites_pkey PRIMARY KEY (id),
  CONSTRAINT invites_token_hash_key UNIQUE (token_hash)
);
CREATE INDEX invites_account ON invites USING btree (account_id, id DESC);
CREATE UNIQUE INDEX invites_open ON invites USING btree (account_id, email) WHERE ((accepted_at IS NULL) AND (revoked_at IS NULL));
CREATE INDEX invites_by ON invites USING btree (invited_by) WHERE ((accepted_at IS NULL) AND (revoked_at IS NULL));

CREATE TABLE terms_revisions (
  id text NOT NULL,
  url text NOT NULL,
  published_at timestamp with time zone NOT NULL,
  effective_at timestamp with time zone NOT NULL,
  told_at timestamp with time zone,
  CONSTRAINT terms_revisions_pkey PRIMARY KEY (id),
  CONSTRAINT terms_revisions_effective_at_key UNIQUE (effective_at)
);

CREATE TABLE terms_acceptances (
  account_id text NOT NULL,
  revision_id text NOT NULL,
  accepted_at timestamp with time zone NOT NULL,
  CONSTRAINT terms_acceptances_account_id_fkey FOREIGN KEY (account_id) REFERENCES accounts(id) ON DELETE CASCADE,
  CONSTRAINT terms_acceptances_revision_id_fkey FOREIGN KEY (revision_id) REFERENCES terms_revisions(id),
  CONSTRAINT terms_acceptances_pkey PRIMARY KEY (account_id, revision_id)
);

CREATE TABLE account_usage (
  account_id text NOT NULL,
  day date NOT NULL,
  session_ms bigint NOT NULL,
  sessions integer NOT NULL,
  fetch_ms bigint NOT NULL DEFAULT 0,
  fetches integer NOT NULL DEFAULT 0,
  CONSTRAINT account_usage_account_id_fkey FOREIGN KEY (account_id) REFERENCES accounts(id) ON DELETE CASCADE,
  CONSTRAINT account_usage_pkey PRIMARY KEY (account_id, day)
);

CREATE TABLE quota_notices (
  account_id text NOT NULL,
  quota text NOT NULL,
  month date NOT NULL,
  percent integer NOT NULL,
  limit_value bigint NOT NULL,
  noted_at timestamp with time zone NOT NULL DEFAULT app_now(),
  CONSTRAINT quota_notices_account_id_fkey FOREIGN KEY (account_id) REFERENCES accounts(id) ON DELETE CASCADE,
  CONSTRAINT quota_notices_pkey PRIMARY KEY (account_id, quota, month, percent, limit_value)
);

CREATE TABLE quota_looks (
  account_id text NOT NULL,
  look_at timestamp with time zone NOT NULL,
  CONSTRAINT quota_looks_account_id_fkey FOREIGN KEY (account_id) REFERENCES accounts(id) ON DELETE CASCADE,
  CONSTRAINT quota_looks_pkey PRIMARY KEY (account_id)
);
CREATE INDEX quota_looks_due ON quota_looks USING btree (look_at);

CREATE TABLE tier_grants (
  id text NOT NULL,
  account_id text NOT NULL,
  kind text NOT NULL,
  tier text NOT NULL,
  sandbox boolean NOT NULL,
  months integer NOT NULL,
  left_ms bigint,
  running_since timestamp with time zone,
  until timestamp with time zone,
  ends_at timestamp with time zone,
  ended_at timestamp with time zone,
  created_at timestamp with time zone NOT NULL,
  CONSTRAINT tier_grants_kind_check CHECK ((kind = ANY (ARRAY['card'::text, 'block'::text]))),
  CONSTRAINT tier_grants_account_id_fkey FOREIGN KEY (account_id) REFERENCES accounts(id),
  CONSTRAINT tier_grants_pkey PRIMARY KEY (id)
);
CREATE INDEX tier_grants_account ON tier_grants USING btree (account_id) WHERE (ended_at IS NULL);
CREATE INDEX tier_grants_ends ON tier_grants USING btree (ends_at) WHERE (ended_at IS NULL);
CREATE INDEX tier_grants_sandbox ON tier_grants USING btree (account_id) WHERE ((ended_at IS NULL) AND sandbox);

CREATE TABLE card_customers (
  id text NOT NULL,
  account_id text NOT NULL,
  sandbox boolean NOT NULL,
  checked_at timestamp with time zone NOT NULL,
  created_at timestamp with time zone NOT NULL,
  CONSTRAINT card_customers_account_id_fkey FOREIGN KEY (account_id) REFERENCES accounts(id),
  CONSTRAINT card_customers_pkey PRIMARY KEY (id),
  CONSTRAINT card_customers_account_id_sandbox_key UNIQUE (account_id, sandbox)
);
CREATE INDEX card_customers_checked ON card_customers USING btree (checked_at);

CREATE TABLE card_prices (
  id text NOT NULL,
  tier text NOT NULL,
  "interval" text NOT NULL,
  amount_cents integer NOT NULL,
  currency text NOT NULL,
  sandbox boolean NOT NULL,
  CONSTRAINT card_prices_interval_check CHECK (("interval" = ANY (ARRAY['month'::text, 'year'::text]))),
  CONSTRAINT card_prices_pkey PRIMARY KEY (id)
);

CREATE TABLE card_checkouts (
  id text NOT NULL,
  customer_id text NOT NULL,
  created_at timestamp with time zone NOT NULL,
  expires_at timestamp with time zone NOT NULL,
  look_at timestamp with time zone,
  CONSTRAINT card_checkouts_customer_id_fkey FOREIGN KEY (customer_id) REFERENCES card_customers(id),
  CONSTRAINT card_checkouts_pkey PRIMARY KEY (id)
);
CREATE INDEX card_checkouts_look ON card_checkouts USING btree (look_at) WHERE (look_at IS NOT NULL);
CREATE INDEX card_checkouts_customer ON card_checkouts USING btree (customer_id);

CREATE TABLE card_subscriptions (
  id text NOT NULL,
  account_id text NOT NULL,
  customer_id text NOT NULL,
  status text NOT NULL,
  tier text NOT NULL,
  "interval" text NOT NULL,
  amount_cents integer NOT NULL,
  currency text NOT NULL,
  period_started_at timestamp with time zone NOT NULL,
  period_ends_at timestamp with time zone NOT NULL,
  past_due_since timestamp with time zone,
  livemode boolean NOT NULL,
  sandbox boolean NOT NULL,
  created_at timestamp with time zone NOT NULL,
  updated_at timestamp with time zone NOT NULL,
  CONSTRAINT card_subscriptions_interval_check CHECK (("interval" = ANY (ARRAY['month'::text, 'year'::text]))),
  CONSTRAINT card_subscriptions_status_check CHECK ((status = ANY (ARRAY['active'::text, 'past_due'::text, 'cancelling'::text, 'ended'::text]))),
  CONSTRAINT card_subscriptions_account_id_fkey FOREIGN KEY (account_id) REFERENCES accounts(id),
  CONSTRAINT card_subscriptions_customer_id_fkey FOREIGN KEY (customer_id) REFERENCES card_customers(id),
  CONSTRAINT card_subscriptions_pkey PRIMARY KEY (id)
);
CREATE INDEX card_subscriptions_account ON card_subscriptions USING btree (account_id);

CREATE TABLE processor_notices (
  id text NOT NULL,
  processor text NOT NULL,
  kind text NOT NULL,
  subject text NOT NULL,
  received_at timestamp with time zone NOT NULL,
  CONSTRAINT processor_notices_pkey PRIMARY KEY (id)
);
CREATE INDEX processor_notices_age ON processor_notices USING btree (received_at);

CREATE TABLE crypto_orders (
  id text NOT NULL,
  account_id text NOT NULL,
  status text NOT NULL,
  failure_reason text,
  tier text NOT NULL,
  months integer NOT NULL,
  amount_cents integer NOT NULL,
  currency text NOT NULL,
  crypto_currency text NOT NULL,
  crypto_amount text NOT NULL,
  crypto_amount_paid text NOT NULL DEFAULT '0'::text,
  exchange_rate text NOT NULL,
  quote_expires_at timestamp with time zone,
  invoice_id text,
  payment_address text,
  payment_uri text,
  checkout_url text,
  expires_at timestamp with time zone,
  transaction_ids text[] NOT NULL DEFAULT '{}'::text[],
  irregularity text,
  crypto_amount_known text,
  refund_address text,
  note text,
  invoice_lines text[] NOT NULL DEFAULT '{}'::text[],
  created_at timestamp with time zone NOT NULL,
  updated_at timestamp with time zone NOT NULL,
  paid_at timestamp with time zone,
  refunded_at timestamp with time zone,
  refunded_cents integer NOT NULL DEFAULT 0,
  receipt_number text,
  receipt_revision integer NOT NULL DEFAULT 1,
  buyer text,
  livemode boolean NOT NULL,
  sandbox boolean NOT NULL,
  look_at timestamp with time zone,
  CONSTRAINT crypto_orders_check CHECK (((status = 'failed'::text) = (failure_reason IS NOT NULL))),
  CONSTRAINT crypto_orders_check1 CHECK (((status = 'paid'::text) = (paid_at IS NOT NULL))),
  CONSTRAINT crypto_orders_failure_reason_check CHECK ((failure_reason = ANY (ARRAY['expired'::text, 'processor_failed'::text, 'refunded'::text]))),
  CONSTRAINT crypto_orders_irregularity_check CHECK ((irregularity = ANY (ARRAY['too_little'::text, 'too_much'::text, 'too_late'::text]))),
  CONSTRAINT crypto_orders_status_check CHECK ((status = ANY (ARRAY['quoted'::text, 'awaiting_payment'::text, 'confirming'::text, 'paid'::text, 'failed'::text, 'cancelled'::text]))),
  CONSTRAINT crypto_orders_account_id_fkey FOREIGN KEY (account_id) REFERENCES accounts(id),
  CONSTRAINT crypto_orders_pkey PRIMARY KEY (id),
  CONSTRAINT crypto_orders_invoice_id_key UNIQUE (invoice_id)
);
CREATE INDEX crypto_orders_account ON crypto_orders USING btree (account_id, id DESC);
CREATE UNIQUE INDEX crypto_orders_open ON crypto_orders USING btree (account_id) WHERE (status = ANY (ARRAY['awaiting_payment'::text, 'confirming'::text]));
CREATE UNIQUE INDEX crypto_orders_receipt ON crypto_orders USING btree (account_id, receipt_number);
CREATE INDEX crypto_orders_look ON crypto_orders USING btree (look_at) WHERE (look_at IS NOT NULL);
CREATE INDEX crypto_orders_quotes ON crypto_orders USING btree (quote_expires_at) WHERE (status = 'quoted'::text);

CREATE TABLE sandbox_things (
  id text NOT NULL,
  kind text NOT NULL,
  data jsonb NOT NULL,
  "position" bigint GENERATED ALWAYS AS IDENTITY,
  CONSTRAINT sandbox_things_pkey PRIMARY KEY (id)
);
CREATE INDEX sandbox_things_kind ON sandbox_things USING btree (kind, "position");

CREATE TABLE profiles (
  id text NOT NULL,
  account_id text NOT NULL,
  name text NOT NULL,
  description text,
  labels jsonb NOT NULL,
  engine text,
  version bigint NOT NULL DEFAULT 0,
  store_id text,
  size_bytes bigint NOT NULL DEFAULT 0,
  saved_at timestamp with time zone,
  created_at timestamp with time zone NOT NULL DEFAULT app_now(),
  updated_at timestamp with time zone NOT NULL DEFAULT app_now(),
  CONSTRAINT profiles_account_id_fkey FOREIGN KEY (account_id) REFERENCES accounts(id),
  CONSTRAINT profiles_pkey PRIMARY KEY (id)
);
CREATE INDEX profiles_store ON profiles USING btree (store_id);
CREATE INDEX profiles_account ON profiles USING btree (account_id, id DESC);

CREATE TABLE profile_stores (
  id text NOT NULL,
  profile_id text NOT NULL,
  data_key bytea NOT NULL,
  created_at timestamp with time zone NOT NULL DEFAULT app_now(),
  CONSTRAINT profile_stores_profile_id_fkey FOREIGN KEY (profile_id) REFERENCES profiles(id) ON DELETE CASCADE,
  CONSTRAINT profile_stores_pkey PRIMARY KEY (id)
);
CREATE INDEX profile_stores_profile ON profile_stores USING btree (profile_id);
CREATE INDEX profile_stores_age ON profile_stores USING btree (created_at);

CREATE TABLE profile_chunks (
  store_id text NOT NULL,
  index integer NOT NULL,
  data bytea STORAGE EXTERNAL NOT NULL,
  CONSTRAINT profile_chunks_store_id_fkey FOREIGN KEY (store_id) REFERENCES profile_stores(id) ON DELETE CASCADE,
  CONSTRAINT profile_chunks_pkey PRIMARY KEY (store_id, index)
);

CREATE TABLE profile_uses (
  session_id text NOT NULL,
  profile_id text NOT NULL,
  account_id text NOT NULL,
  version bigint NOT NULL,
  held_until timestamp with time zone,
  due_at timestamp with time zone,
  taken_until timestamp with time zone,
  CONSTRAINT profile_uses_profile_id_fkey FOREIGN KEY (profile_id) REFERENCES profiles(id) ON DELETE CASCADE,
  CONSTRAINT profile_uses_session_id_fkey FOREIGN KEY (session_id) REFERENCES sessions(id),
  CONSTRAINT profile_uses_pkey PRIMARY KEY (session_id)
);
CREATE INDEX profile_uses_profile ON profile_uses USING btree (profile_id);
CREATE INDEX profile_uses_due ON profile_uses USING btree (due_at) WHERE (due_at IS NOT NULL);

CREATE TABLE webhook_endpoints (
  id text NOT NULL,
  account_id text NOT NULL,
  url text NOT NULL,
  events text[] NOT NULL,
  description text,
  active boolean NOT NULL DEFAULT true,
  secret bytea NOT NULL,
  secret_prefix text NOT NULL,
  prev_secret bytea,
  prev_secret_prefix text,
  grace_expires_at timestamp with time zone,
  consecutive_failures integer NOT NULL DEFAULT 0,
  failing_since timestamp with time zone,
  last_failure_at timestamp with time zone,
  created_at timestamp with time zone NOT NULL DEFAULT app_now(),
  updated_at timestamp with time zone NOT NULL DEFAULT app_now(),
  CONSTRAINT webhook_endpoints_account_id_fkey FOREIGN KEY (account_id) REFERENCES accounts(id),
  CONSTRAINT webhook_endpoints_pkey PRIMARY KEY (id)
);
CREATE INDEX webhook_endpoints_account ON webhook_endpoints USING btree (account_id, id);
CREATE INDEX webhook_endpoints_failing ON webhook_endpoints USING btree (failing_since) WHERE (active AND (failing_since IS NOT NULL));

CREATE TABLE webhook_counts (
  endpoint_id text NOT NULL,
  pending bigint NOT NULL DEFAULT 0,
  delivered bigint NOT NULL DEFAULT 0,
  failed bigint NOT NULL DEFAULT 0,
  dlq bigint NOT NULL DEFAULT 0,
  CONSTRAINT webhook_counts_endpoint_id_fkey FOREIGN KEY (endpoint_id) REFERENCES webhook_endpoints(id) ON DELETE CASCADE,
  CONSTRAINT webhook_counts_pkey PRIMARY KEY (endpoint_id)
) WITH (fillfactor=50);

CREATE TABLE webhook_deliveries (
  id text NOT NULL,
  endpoint_id text NOT NULL,
  account_id text NOT NULL,
  event_id text NOT NULL,
  event_type text NOT NULL,
  subject text NOT NULL,
  payload jsonb,
  status text NOT NULL DEFAULT 'pending'::text,
  attempts jsonb NOT NULL DEFAULT '[]'::jsonb,
  next_attempt_at timestamp with time zone,
  is_test boolean NOT NULL DEFAULT false,
  replay_of text,
  replayed_at timestamp with time zone,
  reason text,
  created_at timestamp with time zone NOT NULL DEFAULT app_now(),
  delivered_at timestamp with time zone,
  CONSTRAINT webhook_deliveries_status_check CHECK ((status = ANY (ARRAY['pending'::text, 'delivered'::text, 'failed'::text, 'dlq'::text]))),
  CONSTRAINT webhook_deliveries_pkey PRIMARY KEY (id)
);
CREATE INDEX webhook_deliveries_endpoint ON webhook_deliveries USING btree (account_id, endpoint_id, id);
CREATE INDEX webhook_deliveries_status ON webhook_deliveries USING btree (endpoint_id, status, id);
CREATE INDEX webhook_deliveries_type ON webhook_deliveries USING btree (endpoint_id, event_type, id);
CREATE INDEX webhook_deliveries_replayed ON webhook_deliveries USING btree (endpoint_id) WHERE ((status = 'dlq'::text) AND (replayed_at IS NOT NULL));
CREATE TRIGGER count_added AFTER INSERT ON webhook_deliveries REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION count_added_deliveries();
CREATE TRIGGER count_moved AFTER UPDATE ON webhook_deliveries REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION count_moved_deliveries();
CREATE TRIGGER count_removed AFTER DELETE ON webhook_deliveries REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION count_removed_deliveries();

CREATE TABLE status_gateways (
  id text NOT NULL,
  sampled_at timestamp with time zone NOT NULL,
  facts jsonb NOT NULL,
  CONSTRAINT status_gateways_pkey PRIMARY KEY (id)
);

CREATE TABLE status_board (
  id boolean NOT NULL DEFAULT true,
  judged_at timestamp with time zone,
  version bigint NOT NULL DEFAULT 0,
  states jsonb NOT NULL DEFAULT '{}'::jsonb,
  CONSTRAINT status_board_id_check CHECK (id),
  CONSTRAINT status_board_pkey PRIMARY KEY (id)
);

CREATE TABLE status_spans (
  id bigint GENERATED ALWAYS AS IDENTITY,
  component text NOT NULL,
  health text NOT NULL,
  started_at timestamp with time zone NOT NULL,
  ended_at timestamp with time zone,
  CONSTRAINT status_spans_pkey PRIMARY KEY (id)
);
CREATE UNIQUE INDEX status_spans_open ON status_spans USING btree (component) WHERE (ended_at IS NULL);
CREATE INDEX status_spans_end ON status_spans USING btree (ended_at);

CREATE TABLE status_incidents (
  id text NOT NULL,
  origin text NOT NULL,
  title text NOT NULL,
  health text NOT NULL,
  components text[] NOT NULL,
  started_at timestamp with time zone NOT NULL,
  resolved_at timestamp with time zone,
  changed_at timestamp with time zone NOT NULL,
  told_at timestamp with time zone,
  CONSTRAINT status_incidents_pkey PRIMARY KEY (id)
);
CREATE UNIQUE INDEX status_incidents_automatic ON status_incidents USING btree (origin) WHERE ((origin = 'automatic'::text) AND (resolved_at IS NULL));
CREATE INDEX status_incidents_end ON status_incidents USING btree (resolved_at);
CREATE INDEX status_incidents_untold ON status_incidents USING btree (changed_at) WHERE ((told_at IS NULL) OR (told_at < changed_at));

CREATE TABLE status_updates (
  id bigint GENERATED ALWAYS AS IDENTITY,
  incident_id text NOT NULL,
  text text NOT NULL,
  created_at timestamp with time zone NOT NULL,
  CONSTRAINT status_updates_incident_id_fkey FOREIGN KEY (incident_id) REFERENCES status_incidents(id) ON DELETE CASCADE,
  CONSTRAINT status_updates_pkey PRIMARY KEY (id)
);
CREATE INDEX status_updates_incident ON status_updates USING btree (incident_id, id);

CREATE TABLE status_subscribers (
  id text NOT NULL,
  email text NOT NULL,
  confirm_hash bytea,
  confirm_until timestamp with time zone,
  confirm_used boolean NOT NULL DEFAULT false,
  asked timestamp with time zone[] NOT NULL,
  end_hash bytea NOT NULL,
  end_token bytea NOT NULL,
  confirmed_at timestamp with time zone,
  ended_at timestamp with time zone,
  CONSTRAINT status_subscribers_pkey PRIMARY KEY (id),
  CONSTRAINT status_subscribers_confirm_hash_key UNIQUE (confirm_hash),
  CONSTRAINT status_subscribers_email_key UNIQUE (email),
  CONSTRAINT status_subscribers_end_hash_key UNIQUE (end_hash)
);
CREATE INDEX status_subscribers_told ON status_subscribers USING btree (id) WHERE ((confirmed_at IS NOT NULL) AND (ended_at IS NULL));

CREATE TABLE status_mailings (
  id bigint GENERATED ALWAYS AS IDENTITY,
  subject text NOT NULL,
  lines text[] NOT NULL,
  after_id text NOT NULL DEFAULT ''::text,
  created_at timestamp with time zone NOT NULL,
  CONSTRAINT status_mailings_pkey PRIMARY KEY (id)
);

CREATE TABLE llm_keys (
  account_id text NOT NULL,
  provider text NOT NULL,
  api_key bytea NOT NULL,
  key_suffix text NOT NULL,
  base_url text,
  model text,
  vision boolean,
  created_at timestamp with time zone NOT NULL,
  tested_at timestamp with time zone,
  test_ok boolean,
  last_used_at timestamp with time zone,
  CONSTRAINT llm_keys_account_id_fkey FOREIGN KEY (account_id) REFERENCES accounts(id) ON DELETE CASCADE,
  CONSTRAINT llm_keys_pkey PRIMARY KEY (account_id)
);

CREATE TABLE llm_settings (
  account_id text NOT NULL,
  consent boolean NOT NULL DEFAULT false,
  monthly_cap_cents integer,
  consented_at timestamp with time zone,
  updated_at timestamp with time zone,
  CONSTRAINT llm_settings_account_id_fkey FOREIGN KEY (account_id) REFERENCES accounts(id) ON DELETE CASCADE,
  CONSTRAINT llm_settings_pkey PRIMARY KEY (account_id)
);

CREATE TABLE llm_spending (
  account_id text NOT NULL,
  month date NOT NULL,
  spent bigint NOT NULL,
  CONSTRAINT llm_spending_account_id_fkey FOREIGN KEY (account_id) REFERENCES accounts(id) ON DELETE CASCADE,
  CONSTRAINT llm_spending_pkey PRIMARY KEY (account_id, month)
);

CREATE TABLE recipes (
  id text NOT NULL,
  account_id text NOT NULL,
  name text NOT NULL,
  description text,
  step_count integer NOT NULL,
  contents bytea NOT NULL,
  created_at timestamp with time zone NOT NULL DEFAULT app_now(),
  CONSTRAINT recipes_account_id_fkey FOREIGN KEY (account_id) REFERENCES accounts(id),
  CONSTRAINT recipes_pkey PRIMARY KEY (id)
);
CREATE INDEX recipes_account ON recipes USING btree (account_id, id DESC);

CREATE TABLE agent_sessions (
  id text NOT NULL,
  account_id text NOT NULL,
  session_id text NOT NULL,
  owns_session boolean NOT NULL,
  mode text NOT NULL,
  instructions text,
  model text,
  recipe_id text,
  labels jsonb NOT NULL,
  limits jsonb,
  allowed_domains jsonb NOT NULL DEFAULT '[]'::jsonb,
  variable_names jsonb NOT NULL DEFAULT '[]'::jsonb,
  variables bytea,
  created_at timestamp with time zone NOT NULL DEFAULT app_now(),
  ended_at timestamp with time zone,
  CONSTRAINT agent_sessions_account_id_fkey FOREIGN KEY (account_id) REFERENCES accounts(id),
  CONSTRAINT agent_sessions_session_id_fkey FOREIGN KEY (session_id) REFERENCES sessions(id) ON DELETE CASCADE,
  CONSTRAINT agent_sessions_pkey PRIMARY KEY (id)
);
CREATE INDEX agent_sessions_account ON agent_sessions USING btree (account_id, id DESC);
CREATE INDEX agent_sessions_session ON agent_sessions USING btree (session_id);
CREATE INDEX agent_sessions_variables ON agent_sessions USING btree (id) WHERE (variables IS NOT NULL);

CREATE TABLE agent_turns (
  id text NOT NULL,
  agent_session_id text NOT NULL,
  account_id text NOT NULL,
  session_id text NOT NULL,
  status text NOT NULL,
  reason text,
  answer text,
  error jsonb,
  credential text NOT NULL,
  model text NOT NULL,
  provider text NOT NULL,
  limits jsonb NOT NULL,
  recipe jsonb,
  recipe_plan bytea,
  output_schema jsonb,
  output jsonb,
  misfits integer NOT NULL DEFAULT 0,
  steps integer NOT NULL DEFAULT 0,
  tokens bigint NOT NULL DEFAULT 0,
  cost bigint,
  worked_ms bigint NOT NULL DEFAULT 0,
  model_ms bigint NOT NULL DEFAULT 0,
  settling_ms bigint NOT NULL DEFAULT 0,
  waiting_ms bigint NOT NULL DEFAULT 0,
  waiting_since timestamp with time zone,
  prompt_version integer,
  vision boolean NOT NULL DEFAULT false,
  control_epoch bigint,
  waits_until timestamp with time zone,
  beat_at timestamp with time zone,
  created_at timestamp with time zone NOT NULL,
  ended_at timestamp with time zone,
  ordered_schema json,
  CONSTRAINT agent_turns_account_id_fkey FOREIGN KEY (account_id) REFERENCES accounts(id),
  CONSTRAINT agent_turns_agent_session_id_fkey FOREIGN KEY (agent_session_id) REFERENCES agent_sessions(id) ON DELETE CASCADE,
  CONSTRAINT agent_turns_pkey PRIMARY KEY (id)
);
CREATE UNIQUE INDEX agent_turns_running ON agent_turns USING btree (agent_session_id) WHERE (ended_at IS NULL);
CREATE INDEX agent_turns_session ON agent_turns USING btree (agent_session_id);
CREATE INDEX agent_turns_held ON agent_turns USING btree (beat_at) WHERE ((ended_at IS NULL) AND (beat_at IS NOT NULL));

CREATE TABLE agent_messages (
  id bigint GENERATED ALWAYS AS IDENTITY,
  agent_session_id text NOT NULL,
  turn_id text NOT NULL,
  "position" integer,
  sealed bytea NOT NULL,
  CONSTRAINT agent_messages_agent_session_id_fkey FOREIGN KEY (agent_session_id) REFERENCES agent_sessions(id) ON DELETE CASCADE,
  CONSTRAINT agent_messages_turn_id_fkey FOREIGN KEY (turn_id) REFERENCES agent_turns(id) ON DELETE CASCADE,
  CONSTRAINT agent_messages_pkey PRIMARY KEY (id),
  CONSTRAINT agent_messages_agent_session_id_position_key UNIQUE (agent_session_id, "position")
);

CREATE TABLE agent_actions (
  id text NOT NULL,
  turn_id text NOT NULL,
  call_id text NOT NULL,
  CONSTRAINT agent_actions_turn_id_fkey FOREIGN KEY (turn_id) REFERENCES agent_turns(id) ON DELETE CASCADE,
  CONSTRAINT agent_actions_pkey PRIMARY KEY (id),
  CONSTRAINT agent_actions_turn_id_call_id_key UNIQUE (turn_id, call_id)
);

CREATE TABLE agent_summaries (
  agent_session_id text NOT NULL,
  "position" integer NOT NULL,
  turn_id text NOT NULL,
  sealed bytea NOT NULL,
  CONSTRAINT agent_summaries_agent_session_id_fkey FOREIGN KEY (agent_session_id) REFERENCES agent_sessions(id) ON DELETE CASCADE,
  CONSTRAINT agent_summaries_turn_id_fkey FOREIGN KEY (turn_id) REFERENCES agent_turns(id) ON DELETE CASCADE,
  CONSTRAINT agent_summaries_pkey PRIMARY KEY (agent_session_id, "position")
);

CREATE TABLE transcript_entries (
  "position" bigint GENERATED ALWAYS AS IDENTITY,
  id text NOT NULL,
  agent_session_id text NOT NULL,
  turn_id text,
  entry jsonb NOT NULL,
  created_at timestamp with time zone NOT NULL,
  CONSTRAINT transcript_entries_agent_session_id_fkey FOREIGN KEY (agent_session_id) REFERENCES agent_sessions(id) ON DELETE CASCADE,
  CONSTRAINT transcript_entries_pkey PRIMARY KEY ("position"),
  CONSTRAINT transcript_entries_id_key UNIQUE (id)
);
CREATE INDEX transcript_entries_session ON transcript_entries USING btree (agent_session_id, "position");
CREATE INDEX transcript_entries_age ON transcript_entries USING btree (created_at);

CREATE TABLE connect_tickets (
  id text NOT NULL,
  key_id text NOT NULL,
  secret_hash bytea NOT NULL,
  options_hash bytea NOT NULL,
  created_at timestamp with time zone NOT NULL DEFAULT app_now(),
  opens_until timestamp with time zone NOT NULL,
  used_at timestamp with time zone,
  CONSTRAINT connect_tickets_key_id_fkey FOREIGN KEY (key_id) REFERENCES api_keys(id) ON DELETE CASCADE,
  CONSTRAINT connect_tickets_pkey PRIMARY KEY (id)
);
CREATE INDEX connect_tickets_created ON connect_tickets USING btree (created_at);

CREATE TABLE slot_waits (
  id text NOT NULL,
  account_id text NOT NULL,
  "position" bigint GENERATED ALWAYS AS IDENTITY,
  waits_until timestamp with time zone NOT NULL,
  CONSTRAINT slot_waits_account_id_fkey FOREIGN KEY (account_id) REFERENCES accounts(id) ON DELETE CASCADE,
  CONSTRAINT slot_waits_pkey PRIMARY KEY (id)
);
CREATE INDEX slot_waits_account ON slot_waits USING btree (account_id, "position");
CREATE INDEX slot_waits_until ON slot_waits USING btree (waits_until);

CREATE TABLE fetches (
  id text NOT NULL,
  account_id text NOT NULL,
  browser_id text NOT NULL,
  options_hash bytea NOT NULL,
  worker_id text NOT NULL,
  tier text NOT NULL,
  began_at timestamp with time zone NOT NULL,
  lapses_at timestamp with time zone NOT NULL,
  CONSTRAINT fetches_account_id_fkey FOREIGN KEY (account_id) REFERENCES accounts(id),
  CONSTRAINT fetches_worker_id_fkey FOREIGN KEY (worker_id) REFERENCES workers(id),
  CONSTRAINT fetches_pkey PRIMARY KEY (id)
);
CREATE INDEX fetches_account ON fetches USING btree (account_id);
CREATE INDEX fetches_worker ON fetches USING btree (worker_id);

CREATE TABLE file_links (
  id text NOT NULL,
  session_id text NOT NULL,
  made_by text NOT NULL,
  file_name text NOT NULL,
  method text NOT NULL,
  secret_hash bytea NOT NULL,
  created_at timestamp with time zone NOT NULL DEFAULT app_now(),
  opens_until timestamp with time zone NOT NULL,
  used_at timestamp with time zone,
  revoked_at timestamp with time zone,
  CONSTRAINT file_links_session_id_fkey FOREIGN KEY (session_id) REFERENCES sessions(id) ON DELETE CASCADE,
  CONSTRAINT file_links_pkey PRIMARY KEY (id)
);
CREATE INDEX file_links_session ON file_links USING btree (session_id);
CREATE INDEX file_links_opens_until ON file_links USING btree (opens_until);

CREATE TABLE session_logs (
  session_id text NOT NULL,
  account_id text NOT NULL,
  stored_on date NOT NULL,
  bytes integer NOT NULL,
  data bytea STORAGE EXTERNAL NOT NULL,
  CONSTRAINT session_logs_pkey PRIMARY KEY (session_id, stored_on)
) PARTITION BY RANGE (stored_on);
CREATE INDEX session_logs_account ON ONLY session_logs USING btree (account_id, stored_on, session_id);

CREATE TABLE session_log_usage (
  account_id text NOT NULL,
  stored_on date NOT NULL,
  bytes bigint NOT NULL,
  CONSTRAINT session_log_usage_pkey PRIMARY KEY (account_id, stored_on)
);

CREATE TABLE capacity_waits (
  id text NOT NULL,
  runtime text NOT NULL,
  waits_until timestamp with time zone NOT NULL,
  CONSTRAINT capacity_waits_pkey PRIMARY KEY (id)
);
CREATE INDEX capacity_waits_until ON capacity_waits USING btree (waits_until);

CREATE TABLE secrets_keys (
  id text NOT NULL,
  proof bytea NOT NULL,
  created_at timestamp with time zone NOT NULL DEFAULT app_now(),
  CONSTRAINT secrets_keys_pkey PRIMARY KEY (id)
);

CREATE SEQUENCE event_numbers;

CREATE OR REPLACE FUNCTION app_now()
 RETURNS timestamp with time zone
 LANGUAGE sql
 PARALLEL SAFE
AS $function$select clock_timestamp()$function$;

CREATE OR REPLACE FUNCTION number_events()
 RETURNS integer
 LANGUAGE plpgsql
AS $function$
      declare
        numbered integer;
      begin
        if not exists (select from events where number is null) then
          return 0;
        end if;
        -- "pilo", and 2 for event numbers.
        perform pg_advisory_xact_lock(x'70696c6f'::int, 2);
        update events set number = fresh.number
          from (
            select position, nextval('event_numbers') as number
            from (select position from events where number is null order by position limit 1000) as oldest
          ) as fresh
          where events.position = fresh.position;
        get diagnostics numbered = row_count;
        return numbered;
      end
    $function$;

CREATE OR REPLACE FUNCTION release_queue(of_kind text, of_queue text, of_claim bigint, moment timestamp with time zone)
 RETURNS timestamp with time zone
 LANGUAGE plpgsql
AS $function$
      declare
        first_due timestamptz;
      begin
        perform from job_queues where kind = of_kind and queue = of_queue and claim = of_claim for update;
        if not found then
          return null;
        end if;
        select min(due_at) into first_due from jobs where kind = of_kind and queue = of_queue and dead_at is null;
        delete from job_queues
          where first_due is null and kind = of_kind and queue = of_queue
            and (failures < 3 or latest_at < moment - interval '1 day');
        update job_queues
          set claim = null, leased_until = null, due_at = coalesce(greatest(first_due, moment), moment + interval '1 day')
          where kind = of_kind and queue = of_queue;
        return first_due;
      end
    $function$;

CREATE OR REPLACE FUNCTION count_added_deliveries()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
    begin
      perform from webhook_counts where endpoint_id in (select endpoint_id from (select endpoint_id, status, 1 as change from new_rows where not is_test) as changes)
        order by endpoint_id for no key update;
      update webhook_counts as counts set
          pending = counts.pending + sums.pending,
          delivered = counts.delivered + sums.delivered,
          failed = counts.failed + sums.failed,
          dlq = counts.dlq + sums.dlq
        from (
          select endpoint_id,
            coalesce(sum(change) filter (where status = 'pending'), 0) as pending,
            coalesce(sum(change) filter (where status = 'delivered'), 0) as delivered,
            coalesce(sum(change) filter (where status = 'failed'), 0) as failed,
            coalesce(sum(change) filter (where status = 'dlq'), 0) as dlq
          from (select endpoint_id, status, 1 as change from new_rows where not is_test) as changes group by endpoint_id
        ) as sums
        where counts.endpoint_id = sums.endpoint_id;
      return null;
    end
  $function$;

CREATE OR REPLACE FUNCTION count_moved_deliveries()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
    begin
      perform from webhook_counts where endpoint_id in (select endpoint_id from (select endpoint_id, status, 1 as change from new_rows where not is_test union all select endpoint_id, status, -1 as change from old_rows where not is_test) as changes)
        order by endpoint_id for no key update;
      update webhook_counts as counts set
          pending = counts.pending + sums.pending,
          delivered = counts.delivered + sums.delivered,
          failed = counts.failed + sums.failed,
          dlq = counts.dlq + sums.dlq
        from (
          select endpoint_id,
            coalesce(sum(change) filter (where status = 'pending'), 0) as pending,
            coalesce(sum(change) filter (where status = 'delivered'), 0) as delivered,
            coalesce(sum(change) filter (where status = 'failed'), 0) as failed,
            coalesce(sum(change) filter (where status = 'dlq'), 0) as dlq
          from (select endpoint_id, status, 1 as change from new_rows where not is_test union all select endpoint_id, status, -1 as change from old_rows where not is_test) as changes group by endpoint_id
        ) as sums
        where counts.endpoint_id = sums.endpoint_id;
      return null;
    end
  $function$;

CREATE OR REPLACE FUNCTION count_removed_deliveries()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
    begin
      perform from webhook_counts where endpoint_id in (select endpoint_id from (select endpoint_id, status, -1 as change from old_rows where not is_test) as changes)
        order by endpoint_id for no key update;
      update webhook_counts as counts set
          pending = counts.pending + sums.pending,
          delivered = counts.delivered + sums.delivered,
          failed = counts.failed + sums.failed,
          dlq = counts.dlq + sums.dlq
        from (
          select endpoint_id,
            coalesce(sum(change) filter (where status = 'pending'), 0) as pending,
            coalesce(sum(change) filter (where status = 'delivered'), 0) as delivered,
            coalesce(sum(change) filter (where status = 'failed'), 0) as failed,
            coalesce(sum(change) filter (where status = 'dlq'), 0) as dlq
          from (select endpoint_id, status, -1 as change from old_rows where not is_test) as changes group by endpoint_id
        ) as sums
        where counts.endpoint_id = sums.endpoint_id;
      return null;
    end
  $function$;
