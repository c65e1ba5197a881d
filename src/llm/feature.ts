import { defineService } from "../feature.ts";
import { LlmSettingsService } from "../gen/pilothouse/v1/llm_settings_pb.ts";
import { createLlmSettingsService, type LlmSettingsParts } from "./service.ts";
import { llmMigrations } from "./tables.ts";

export const llm = defineService({
  service: LlmSettingsService,
  migrations: llmMigrations,
  create: (parts: LlmSettingsParts) => ({ methods: createLlmSettingsService(parts) }),
});
