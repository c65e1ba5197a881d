import { useQuery } from "@connectrpc/connect-query";
import { useState } from "react";
import {
  type BundledLlmStatus,
  type ByokLlmKey,
  LlmProvider,
  LlmSettingsService,
} from "../../../src/gen/pilothouse/v1/llm_settings_pb.ts";
import { useIsManager } from "../../api/me.ts";
import { problemOf } from "../../api/problem.ts";
import { useChange } from "../../api/queries.ts";
import { Badge } from "../../ui/badge.tsx";
import { Actions, Button } from "../../ui/button.tsx";
import { Card, Properties, Property } from "../../ui/card.tsx";
import { choiceOf } from "../../ui/choice.ts";
import { Confirm } from "../../ui/dialog.tsx";
import { CheckField, SelectField, TextField, textOf } from "../../ui/field.tsx";
import { Form } from "../../ui/form.tsx";
import { Meter } from "../../ui/meter.tsx";
import { Loaded, ProblemNotice } from "../../ui/state.tsx";
import { Ago } from "../../ui/time.tsx";
import { moneyText } from "../billing/tier-words.ts";

const providers = [
  [LlmProvider.ANTHROPIC, "Anthropic"],
  [LlmProvider.OPENAI, "OpenAI"],
  [LlmProvider.GOOGLE, "Google"],
  [LlmProvider.OPENAI_COMPATIBLE, "OpenAI-compatible"],
] as const;

const providerName = (provider: LlmProvider): string => providers.find(([each]) => each === provider)?.[1] ?? "Unknown";

export function LlmKeyCard() {
  const isManager = useIsManager();
  const key = useQuery(LlmSettingsService.method.getByokLlmKey, {}, { retry: false });
  const isMissing = key.error !== null && problemOf(key.error).slug === "not-found";
  return (
    <Card
      title="Own LLM key"
      about="Agents use it before the bundled model. It is stored encrypted, and never shown again."
    >
      {isMissing ? (
        isManager ? (
          <LlmKeyForm />
        ) : (
          <p className="text-sm text-soft">There is no key. An owner or admin can add one.</p>
        )
      ) : (
        <Loaded query={key}>{(data) => <StoredKey stored={data} />}</Loaded>
      )}
    </Card>
  );
}

function StoredKey({ stored }: { readonly stored: ByokLlmKey }) {
  const isManager = useIsManager();
  const changes = [LlmSettingsService];
  const test = useChange(LlmSettingsService.method.testByokLlmKey, { changes });
  const remove = useChange(LlmSettingsService.method.deleteByokLlmKey, { changes });
  const { provider, keySuffix, model, baseUrl, lastUsedAt, testedAt, testOk } = stored;
  return (
    <div className="flex flex-col gap-4">
      <Properties>
        <Property name="Provider">{providerName(provider)}</Property>
        <Property name="Key">
          <code className="font-mono text-xs">…{keySuffix}</code>
        </Property>
        {model !== undefined && <Property name="Model">{model}</Property>}
        {baseUrl !== undefined && <Property name="Address">{baseUrl}</Property>}
        <Property name="Used">
          <Ago at={lastUsedAt} />
        </Property>
        <Property name="Tested">
          <Ago at={testedAt} />{" "}
          {testOk !== undefined && <Badge tone={testOk ? "good" : "bad"}>{testOk ? "Works" : "Failed"}</Badge>}
        </Property>
      </Properties>
      {test.data && !test.data.ok && <p className="text-sm text-bad">{test.data.error ?? test.data.reason}</p>}
      <ProblemNotice problem={test.problem ?? remove.problem} />
      {isManager && (
        <div className="flex gap-2">
          <Button isPending={test.isPending} onClick={() => test.run({})}>
            Test
          </Button>
          <Confirm
            trigger={<Button kind="danger">Remove</Button>}
            title="Remove the key?"
            action="Remove"
            onConfirm={() => remove.runAsync({})}
            problem={remove.problem}
          >
            Turns of agents then need the bundled model.
          </Confirm>
        </div>
      )}
    </div>
  );
}

/** Form of the account's own LLM key, for owners and admins. */
export function LlmKeyForm({ onCancel }: { readonly onCancel?: () => void }) {
  const [provider, setProvider] = useState<LlmProvider>(LlmProvider.ANTHROPIC);
  const put = useChange(LlmSettingsService.method.putByokLlmKey, { changes: [LlmSettingsService] });
  const isCompatible = provider === LlmProvider.OPENAI_COMPATIBLE;
  const submit = (form: FormData): void => {
    const [apiKey = "", model, baseUrl] = [textOf(form, "api_key"), textOf(form, "model"), textOf(form, "base_url")];
    put.run({ provider, apiKey, ...(model !== undefined && { model }), ...(baseUrl !== undefined && { baseUrl }) });
  };
  return (
    <Form onSubmit={submit} {...(!onCancel && { className: "max-w-md" })}>
      <SelectField
        label="Provider"
        value={provider}
        onChange={({ target }) => setProvider(choiceOf(providers, target.value))}
      >
        {providers.map(([value, title]) => (
          <option key={value} value={value}>
            {title}
          </option>
        ))}
      </SelectField>
      <TextField label="Key" name="api_key" type="password" autoComplete="off" problem={put.problem} required />
      <TextField
        label="Model"
        name="model"
        placeholder="Default of the provider"
        problem={put.problem}
        required={isCompatible}
      />
      {isCompatible && (
        <TextField
          label="Address"
          name="base_url"
          type="url"
          placeholder="https://llm.example.com/v1"
          problem={put.problem}
          required
        />
      )}
      <ProblemNotice problem={put.problem} fields={["api_key", "model", "base_url"]} />
      <Actions>
        {onCancel && <Button onClick={onCancel}>Cancel</Button>}
        <Button type="submit" kind="primary" isPending={put.isPending}>
          Save the key
        </Button>
      </Actions>
    </Form>
  );
}

export function BundledCard() {
  const status = useQuery(LlmSettingsService.method.getBundledLlmStatus, {});
  return (
    <Card title="Bundled model" about="A model that the service pays for, up to a monthly cap.">
      <Loaded query={status}>
        {(data) =>
          data.available ? (
            <Bundled status={data} />
          ) : (
            <p className="text-sm text-soft">This service has no bundled model.</p>
          )
        }
      </Loaded>
    </Card>
  );
}

function Bundled({ status }: { readonly status: BundledLlmStatus }) {
  const isManager = useIsManager();
  const { bundledLlmConsent: consent, usedCents, monthlyCapCents, currency, model } = status;
  const update = useChange(LlmSettingsService.method.updateBundledLlmSettings, { changes: [LlmSettingsService] });
  return (
    <div className="flex max-w-md flex-col gap-4">
      <CheckField
        label={model === undefined ? "Use the bundled model" : `Use the bundled model (${model})`}
        hint="The text of pages that agents read is sent to it"
        checked={consent}
        disabled={!isManager || update.isPending}
        onChange={({ target }) =>
          update.run({ bundledLlmConsent: target.checked, updateMask: { paths: ["bundled_llm_consent"] } })
        }
      />
      <Meter
        label="Spent this month"
        used={usedCents}
        limit={monthlyCapCents}
        format={(cents) => moneyText(cents, currency)}
      />
      {isManager && (
        <Form
          onSubmit={(form) =>
            update.run({
              monthlyCapCents: Math.round(Number(form.get("cap")) * 100),
              updateMask: { paths: ["monthly_cap_cents"] },
            })
          }
        >
          <TextField
            label={`Cap a month, ${currency.toUpperCase()}`}
            name="cap"
            type="number"
            min={0}
            step="0.01"
            defaultValue={monthlyCapCents / 100}
            problem={update.problem}
          />
          <ProblemNotice problem={update.problem} />
          <Button type="submit" className="self-start" isPending={update.isPending}>
            Save the cap
          </Button>
        </Form>
      )}
    </div>
  );
}
