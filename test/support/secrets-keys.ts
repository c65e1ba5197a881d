import { randomBytes } from "node:crypto";

/** Secrets keys of gateways in tests that set no others. */
export const testSecretsKeys = `test:${randomBytes(32).toString("base64")}`;
