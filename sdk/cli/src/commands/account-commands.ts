import type { Command, Invocation } from "../command.ts";
import { UsageError } from "../usage-error.ts";

export const recipesCommand: Command = {
  summary: "lists recipes",
  positionals: "",
  count: [0, 0],
  async run({ client, output, signal }) {
    const recipes = await collect(client().list<object>("/v1/recipes", {}, { signal }));
    output.table(recipes, ["id", "name", "step_count"], "no recipes");
  },
};

async function collect<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const all: Item[] = [];
  for await (const item of items) all.push(item);
  return all;
}

/** Key in a response. */
interface ApiKey {
  readonly id: string;
  readonly key?: string;
}

async function createKey({ client, positionals: [, name], values, output, signal }: Invocation): Promise<void> {
  if (name === undefined) throw new UsageError("expected a name, as in: pilothouse keys create NAME");
  const body = { name, scopes: values.texts("scope") };
  const created = await client().request<ApiKey>("POST", "/v1/api-keys", { body }, { signal });
  output.result(created, `${created.id}\n${created.key}`);
  if (!output.isJson) output.progress("The key is not shown again.");
}

async function revokeKey({ client, positionals: [, id], output, signal }: Invocation): Promise<void> {
  if (id === undefined) throw new UsageError("expected an id, as in: pilothouse keys revoke KEY_ID");
  await client().request("DELETE", `/v1/api-keys/${encodeURIComponent(id)}`, {}, { signal });
  output.result({ id, status: "revoked" }, `revoked ${id}`);
}

async function listKeys({ client, output, signal }: Invocation): Promise<void> {
  const keys = await collect(client().list<ApiKey>("/v1/api-keys", {}, { signal }));
  output.table(keys, ["id", "name", "status", "scopes", "last_used_at"], "no keys");
}

const keyActions: Readonly<Record<string, (invocation: Invocation) => Promise<void>>> = {
  list: listKeys,
  create: createKey,
  revoke: revokeKey,
};

export const keysCommand: Command = {
  summary: "lists, creates or revokes API keys",
  positionals: "[list | create NAME | revoke KEY_ID]",
  count: [0, 2],
  options: {
    scope: { type: "string", multiple: true, value: "SCOPE", help: "scope of a new key, such as sessions:write" },
  },
  async run(invocation) {
    const [action = "list"] = invocation.positionals;
    const run = Object.hasOwn(keyActions, action) ? keyActions[action] : undefined;
    if (!run) throw new UsageError(`expected ${Object.keys(keyActions).join(", ")}, got ${action}`);
    await run(invocation);
  },
};
