import { LlmSettingsService } from "../../gen/pilothouse/v1/llm_settings_pb.ts";
import { defineService } from "../../kernel/feature.ts";
import { createLlmSettingsService, type LlmSettingsParts } from "./service.ts";

export const llm = defineService({
  service: LlmSettingsService,
  create: (parts: LlmSettingsParts) => ({ methods: createLlmSettingsService(parts) }),
});
