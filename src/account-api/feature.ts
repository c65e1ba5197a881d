import { AccountService } from "../gen/pilothouse/v1/account_pb.ts";
import { defineService } from "../kernel/feature.ts";
import { type AccountServiceParts, createAccountService } from "./service.ts";

/** The caller's user and account. */
export const me = defineService({
  service: AccountService,
  create: (parts: AccountServiceParts) => ({ methods: createAccountService(parts) }),
});
