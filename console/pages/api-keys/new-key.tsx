import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { useState } from "react";
import { ApiKeyService } from "../../../src/gen/pilothouse/v1/api_key_pb.ts";
import { useMe } from "../../api/me.ts";
import { useChange } from "../../api/queries.ts";
import { Actions, Button } from "../../ui/button.tsx";
import { Code } from "../../ui/copy.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { CheckField, SelectField, TextArea, TextField, textOf } from "../../ui/field.tsx";
import { Form } from "../../ui/form.tsx";
import { SecretDialog } from "../../ui/secret-dialog.tsx";
import { Segments } from "../../ui/segments.tsx";
import { ProblemNotice } from "../../ui/state.tsx";

const resources = [
  ["sessions", "Sessions"],
  ["agent_sessions", "Agents"],
  ["recipes", "Recipes"],
  ["profiles", "Profiles"],
  ["api_keys", "API keys"],
  ["webhooks", "Webhooks"],
  ["account", "Account"],
  ["team", "Team"],
  ["billing", "Billing"],
] as const;

type Preset = "all" | "read" | "connect" | "own";

const presets: readonly (readonly [Preset, string])[] = [
  ["all", "Everything"],
  ["read", "Read only"],
  ["connect", "Connect only"],
  ["own", "Choose"],
];

const day = 86_400_000;

function scopesOf(preset: Preset, form: FormData, allowed: readonly string[]): string[] {
  if (preset === "own") return form.getAll("scope").map(String);
  if (preset === "connect") return ["sessions:read", "sessions:write"];
  return preset === "read" ? allowed.filter((scope) => scope.endsWith(":read")) : [...allowed];
}

export function NewKey({ onClose }: { readonly onClose: () => void }) {
  const { data: me } = useMe();
  const [preset, setPreset] = useState<Preset>("all");
  const allowed = me?.scopes ?? [];
  const create = useChange(ApiKeyService.method.create, { changes: [ApiKeyService] });
  const submit = (form: FormData): void => {
    const days = Number(textOf(form, "days"));
    const addresses = textOf(form, "addresses")?.split(/[\s,]+/) ?? [];
    create.run({
      name: textOf(form, "name") ?? "",
      scopes: scopesOf(preset, form, allowed),
      addresses,
      ...(days > 0 && { expiresAt: timestampFromMs(Date.now() + days * day) }),
    });
  };
  const key = create.data?.key;
  if (key !== undefined && preset === "connect") return <ConnectDialog secret={key} onClose={onClose} />;
  if (key !== undefined) return <SecretDialog title="Your new key" secret={key} onClose={onClose} />;
  return (
    <Dialog title="New API key" isOpen onClose={onClose}>
      <Form onSubmit={submit}>
        <TextField
          label="Name"
          name="name"
          placeholder="Nightly checks"
          maxLength={200}
          autoComplete="off"
          problem={create.problem}
          required
        />
        <div>
          <p className="mb-1.5 text-sm font-medium" id="access">
            Access
          </p>
          <Segments label="Access" value={preset} choices={presets} onChoose={setPreset} />
          {preset === "connect" && (
            <p className="mt-1.5 text-xs text-faint">Only sessions, for an address that contains the key.</p>
          )}
          {preset === "own" && <ScopeTable allowed={allowed} />}
        </div>
        <SelectField label="Expires" name="days" defaultValue="0">
          <option value="0">Never</option>
          <option value="7">After 7 days</option>
          <option value="30">After 30 days</option>
          <option value="90">After 90 days</option>
          <option value="365">After a year</option>
        </SelectField>
        <TextArea
          label="Addresses"
          name="addresses"
          rows={2}
          placeholder="203.0.113.0/24"
          hint="Networks from which the key works. Default: all"
          problem={create.problem}
        />
        <ProblemNotice problem={create.problem} />
        <Actions>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" kind="primary" isPending={create.isPending}>
            Create the key
          </Button>
        </Actions>
      </Form>
    </Dialog>
  );
}

function ScopeTable({ allowed }: { readonly allowed: readonly string[] }) {
  return (
    <div className="mt-3 grid grid-cols-[1fr_auto_auto] items-center gap-x-6 gap-y-2 rounded-lg border border-line p-3 text-sm">
      {resources.map(([resource, title]) => (
        <div key={resource} className="contents">
          <span>{title}</span>
          {["read", "write"].map((access) => (
            <CheckField
              key={access}
              name="scope"
              value={`${resource}:${access}`}
              disabled={!allowed.includes(`${resource}:${access}`)}
              label={
                <>
                  <span className="sr-only">{title}: </span>
                  {access}
                </>
              }
            />
          ))}
        </div>
      ))}
    </div>
  );
}

/** The address of `/connect` for a key that can only connect, and code that uses it. */
function ConnectDialog({ secret, onClose }: { readonly secret: string; readonly onClose: () => void }) {
  const url = `${location.origin.replace(/^http/, "ws")}/connect`;
  const code = `import { chromium } from "playwright";

const headers = { authorization: "Bearer ${secret}" };
const browser = await chromium.connectOverCDP("${url}", { headers });
const [page] = browser.contexts()[0].pages();
await page.goto("https://example.com/");
await browser.close(); // Ends the session.
`;
  return (
    <Dialog title="Your new key" about="Copy it now: it is not shown again." isOpen onClose={onClose}>
      <div className="flex flex-col gap-3">
        <p className="text-sm text-soft">One address creates a session for each program that connects:</p>
        <Code text={code} label="Playwright code" />
        <p className="text-sm text-soft">For clients that cannot send headers:</p>
        <Code text={`${url}/${secret}`} label="the address with the key" />
      </div>
      <Actions>
        <Button kind="primary" onClick={onClose}>
          Done
        </Button>
      </Actions>
    </Dialog>
  );
}
