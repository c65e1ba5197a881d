import { randomBytes } from "node:crypto";

/* Prints the `.env` of compose.yaml, with new secrets. */

const secret = (bytes = 24): string => randomBytes(bytes).toString("hex");

process.stdout.write(`# Settings of compose.yaml. Keep this file secret, and a copy of it: without SECRETS_KEYS a backup of the database is of
# little use. docs/configuration.md lists more variables; add those that you need to compose.yaml.

# The address that clients use. With a domain the proxy gets a certificate by itself: set PUBLIC_URL=https://DOMAIN,
# PROXY_ADDRESS=DOMAIN, HTTP_PORT=80 and HTTPS_PORT=443.
PUBLIC_URL=http://localhost:8080
PROXY_ADDRESS=:80
HTTP_PORT=127.0.0.1:8080
HTTPS_PORT=127.0.0.1:8443

# Sessions of each of the two workers, about 400 MB each. Empty: as many as cores and memory allow one worker.
WORKER_SLOTS=8

# Sign-up needs a mail server: set both to accept new accounts, and SIGNUP=open.
SIGNUP=closed
SMTP_URL=
MAIL_FROM=

# Video of live sessions, with \`--profile video\`: set LIVEKIT_URL to ws://livekit.localhost:7880 on this machine. Elsewhere it
# is a wss:// address of port 7880, and LIVEKIT_NODE_IP this machine's address for viewers.
LIVEKIT_URL=
LIVEKIT_NODE_IP=
LIVEKIT_API_KEY=pilothouse
LIVEKIT_API_SECRET=${secret()}

# Traces: see docs/scaling.md.
OTEL_EXPORTER_OTLP_ENDPOINT=
OTEL_EXPORTER_OTLP_HEADERS=
OTEL_TRACES_SAMPLER_ARG=

# Secrets.
POSTGRES_PASSWORD=${secret()}
REDIS_PASSWORD=${secret()}
WORKER_TOKEN=${secret()}
SECRETS_KEYS=one:${randomBytes(32).toString("base64")}
`);
