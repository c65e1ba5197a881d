import { CredentialsService } from "../../gen/pilothouse/v1/credentials_pb.ts";
import { defineService } from "../../kernel/feature.ts";
import { type CredentialsServiceParts, createCredentialsService } from "./service.ts";

/** Passwords and e-mail addresses that users log in with. */
export const credentials = defineService({
  service: CredentialsService,
  create: (parts: CredentialsServiceParts) => ({ methods: createCredentialsService(parts) }),
});
