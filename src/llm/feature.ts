import { defineService } from "../feature.ts";
import { LlmSettingsService } from "../gen/pilothouse/v1/llm_settings_pb.ts";
import { createLlmSettingsService, type LlmSettingsParts } from "./service.ts";

export const llm = defineService({
  service: LlmSettingsService,
  create: (parts: LlmSettingsParts) => ({ methods: createLlmSettingsService(parts) }),
});
