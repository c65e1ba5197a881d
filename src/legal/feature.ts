import { LegalService } from "../gen/pilothouse/v1/legal_pb.ts";
import { defineService } from "../kernel/feature.ts";
import { type TermsMailParts, termsMailTask } from "./publish.ts";
import { createLegalService, type LegalServiceParts } from "./service.ts";

export const legal = defineService({
  service: LegalService,
  create: (parts: LegalServiceParts & TermsMailParts) => ({
    methods: createLegalService(parts),
    dueTasks: [termsMailTask(parts)],
  }),
});
