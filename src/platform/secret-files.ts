import { readFileSync } from "node:fs";
import { ConfigError, type Environment } from "./environment.ts";

/**
 * Variables with secrets. Instead of each, the variable with the suffix `_FILE` can contain the path of a file with the
 * secret.
 */
const secrets = [
  "DATABASE_URL",
  "REDIS_URL",
  "WORKER_TOKEN",
  "SECRETS_KEYS",
  "SMTP_URL",
  "LIVEKIT_API_KEY",
  "LIVEKIT_API_SECRET",
  "STRIPE_SECRET_KEY",
  "STRIPE_WEBHOOK_SECRET",
  "BTCPAY_API_KEY",
  "BTCPAY_WEBHOOK_SECRET",
  "BUNDLED_LLM_API_KEY",
] as const;

function readSecret(name: string, path: string): string {
  try {
    return readFileSync(path, "utf8").trim();
  } catch (error) {
    throw new ConfigError(name, `accepts the path of a readable file, not \`${path}\``, { cause: error });
  }
}

/**
 * Returns the environment with secrets read from files. Throws a ConfigError if a secret is set twice or its file
 * cannot be read.
 */
export function withSecretFiles(env: Environment): Environment {
  const found: Record<string, string> = {};
  for (const name of secrets) {
    const path = env[`${name}_FILE`];
    if (!path) continue;
    if (env[name]) throw new ConfigError(`${name}_FILE`, `and ${name} are both set: set one of them`);
    found[name] = readSecret(`${name}_FILE`, path);
  }
  return { ...env, ...found };
}
