import { ApiKeyService } from "../../gen/pilothouse/v1/api_key_pb.ts";
import { defineService } from "../../kernel/feature.ts";
import { keyBearers } from "./key-bearer.ts";
import { type ApiKeyServiceParts, createApiKeyService } from "./service.ts";

/** Milliseconds between sweeps of expired keys. */
const sweepEvery = 60_000;

export const apiKeys = defineService({
  service: ApiKeyService,
  bearers: keyBearers,
  create: (parts: ApiKeyServiceParts) => ({
    methods: createApiKeyService(parts),
    jobs: [{ run: parts.apiKeys.sweep, every: sweepEvery, failureMessage: "failed to sweep expired API keys" }],
  }),
});
