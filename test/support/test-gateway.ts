import { Gateway, type GatewayOptions } from "../../gateway/gateway.ts";
import { insertAccount } from "../../src/accounts/store.ts";
import { createKey } from "../../src/identity/api-keys/api-keys.ts";
import { freePorts } from "./free-port.ts";
import { type Rest, restClient } from "./rest.ts";
import { type SessionsApp, type SessionsAppOptions, startSessionsApp } from "./sessions-app.ts";

/** Complete gateway in this process with a new database and fake workers. */
export interface TestGateway extends AsyncDisposable {
  readonly running: SessionsApp;
  readonly url: string;
  readonly grpcAddress: string;
  /** Calls the REST API with the developer key. */
  readonly rest: Rest;
  /** Creates an account with one key, as an operator does. Returns the key. */
  addAccount(account?: { readonly tier?: string; readonly scopes?: readonly string[] }): Promise<string>;
  /** Calls the REST API with another key. */
  as(key: string): Rest;
}

export async function startTestGateway(
  env: Record<string, string> = {},
  { gateway: gatewayOptions, ...options }: SessionsAppOptions & { readonly gateway?: GatewayOptions } = {},
): Promise<TestGateway> {
  const ports = await freePorts("PORT", "GRPC_PORT", "INTERNAL_PORT");
  const variables = Object.fromEntries(Object.entries(ports).map(([name, port]) => [name, String(port)]));
  const running = await startSessionsApp({ ...variables, ...env }, options);
  const { app } = running;
  const gateway = new Gateway(app, gatewayOptions);
  await gateway.start();
  const url = `http://127.0.0.1:${ports.PORT}`;
  const as = (key: string): Rest => restClient({ url, key });
  return {
    running,
    url,
    grpcAddress: `127.0.0.1:${ports.GRPC_PORT}`,
    rest: as(app.developerKey ?? ""),
    as,
    addAccount: ({ tier = "enterprise", scopes } = {}) =>
      app.db.transaction(async (tx) => {
        const accountId = app.ids.next("acc");
        await insertAccount(tx, { id: accountId, name: "Test", tier });
        return (await createKey(tx, app.ids, { accountId, name: "test", ...(scopes && { scopes }) })).token;
      }),
    async [Symbol.asyncDispose]() {
      await gateway.stop();
      await running[Symbol.asyncDispose]();
    },
  };
}
