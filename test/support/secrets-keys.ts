import { randomBytes } from "node:crypto";

/** What gateways of a test seal with that have no key of their own. */
export const testSecretsKeys = `test:${randomBytes(32).toString("base64")}`;
