import { LoginService } from "../../gen/pilothouse/v1/login_pb.ts";
import { defineService } from "../../kernel/feature.ts";
import { sweepTask } from "../../platform/sweep-task.ts";
import { loginBearers } from "./login-bearer.ts";
import { createLoginService, type LoginServiceParts } from "./service.ts";

export const logins = defineService({
  service: LoginService,
  bearers: loginBearers,
  create: (parts: LoginServiceParts) => ({
    methods: createLoginService(parts),
    jobs: [sweepTask(parts.logins.sweep, "failed to sweep expired logins")],
  }),
});
