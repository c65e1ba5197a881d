import { LoginService } from "../../gen/pilothouse/v1/login_pb.ts";
import { defineService } from "../../kernel/feature.ts";
import { loginBearers } from "./login-bearer.ts";
import { createLoginService, type LoginServiceParts } from "./service.ts";

/** Milliseconds between sweeps of expired logins. */
const sweepEvery = 600_000;

export const logins = defineService({
  service: LoginService,
  bearers: loginBearers,
  create: (parts: LoginServiceParts) => ({
    methods: createLoginService(parts),
    jobs: [{ run: parts.logins.sweep, every: sweepEvery, complaint: "failed to sweep expired logins" }],
  }),
});
