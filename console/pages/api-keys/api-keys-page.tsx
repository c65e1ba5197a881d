import { KeyRound, Plus } from "lucide-react";
import { useState } from "react";
import { type ApiKey, ApiKeyService, ApiKeyStatus } from "../../../src/gen/pilothouse/v1/api_key_pb.ts";
import { useList } from "../../api/lists.ts";
import { useChange } from "../../api/queries.ts";
import { StateBadge, type States } from "../../ui/badge.tsx";
import { Button } from "../../ui/button.tsx";
import { Card } from "../../ui/card.tsx";
import { Confirm } from "../../ui/dialog.tsx";
import { List } from "../../ui/list.tsx";
import { Page } from "../../ui/page.tsx";
import { SecretDialog } from "../../ui/secret-dialog.tsx";
import { EmptyState } from "../../ui/state.tsx";
import { Ago, DateOf } from "../../ui/time.tsx";
import { NewKey } from "./new-key.tsx";

const states: States<ApiKeyStatus> = {
  [ApiKeyStatus.UNSPECIFIED]: ["Unknown", "neutral"],
  [ApiKeyStatus.ACTIVE]: ["Active", "good"],
  [ApiKeyStatus.EXPIRING]: ["Expiring", "warn"],
  [ApiKeyStatus.EXPIRED]: ["Expired", "neutral"],
  [ApiKeyStatus.REVOKED]: ["Revoked", "neutral"],
};

const isUsable = ({ status }: ApiKey): boolean => status === ApiKeyStatus.ACTIVE || status === ApiKeyStatus.EXPIRING;

const allScopes = 18;

function scopeText(scopes: readonly string[]): string {
  if (scopes.length === allScopes) return "Everything";
  if (scopes.length <= 2) return scopes.join(", ");
  return scopes.every((scope) => scope.endsWith(":read")) ? "Read only" : `${scopes.length} scopes`;
}

function ScopeSummary({ scopes }: { readonly scopes: readonly string[] }) {
  return (
    <span title={scopes.join("\n")} className="text-soft">
      {scopeText(scopes)}
    </span>
  );
}

export function ApiKeysPage() {
  const [isCreating, setCreating] = useState(false);
  const list = useList(ApiKeyService.method.list, {});
  const createButton = (
    <Button kind="primary" onClick={() => setCreating(true)}>
      <Plus size={15} aria-hidden="true" />
      New key
    </Button>
  );
  return (
    <Page title="API keys" about="Programs authenticate with a key, which is shown once." actions={createButton}>
      <Card isFlush>
        <List<ApiKey>
          list={list}
          label="API keys"
          keyOf={({ id }) => id}
          columns={[
            {
              title: "Name",
              cell: ({ name, keyPrefix }) => (
                <span className="block min-w-0">
                  <span className="block truncate font-medium">{name}</span>
                  <code className="font-mono text-xs text-faint">{keyPrefix}…</code>
                </span>
              ),
            },
            {
              title: "Status",
              cell: ({ status }) => <StateBadge states={states} state={status} />,
            },
            { title: "Scopes", from: "lg", cell: ({ scopes }) => <ScopeSummary scopes={scopes} /> },
            { title: "Used", from: "sm", cell: ({ lastUsedAt }) => <Ago at={lastUsedAt} /> },
            { title: "Expires", from: "lg", cell: ({ expiresAt }) => <DateOf at={expiresAt} none="never" /> },
            { title: "", isRight: true, cell: (key) => isUsable(key) && <KeyActions apiKey={key} /> },
          ]}
          empty={
            <EmptyState icon={KeyRound} title="No keys yet" action={createButton}>
              Give each program a key of its own, with the scopes that it needs.
            </EmptyState>
          }
        />
      </Card>
      {isCreating && <NewKey onClose={() => setCreating(false)} />}
    </Page>
  );
}

function KeyActions({ apiKey: { id, name, status } }: { readonly apiKey: ApiKey }) {
  const revoke = useChange(ApiKeyService.method.revoke, { changes: [ApiKeyService] });
  const rotate = useChange(ApiKeyService.method.rotate, { changes: [ApiKeyService] });
  return (
    <span className="inline-flex flex-wrap justify-end gap-1.5">
      {status === ApiKeyStatus.ACTIVE && (
        <Confirm
          trigger={<Button size="small">Rotate</Button>}
          title={`Rotate ${name}?`}
          action="Rotate"
          onConfirm={() => rotate.runAsync({ id })}
          problem={rotate.problem}
        >
          You get a new key. The old one works for another 24 hours.
        </Confirm>
      )}
      <Confirm
        trigger={
          <Button size="small" kind="danger">
            Revoke
          </Button>
        }
        title={`Revoke ${name}?`}
        action="Revoke"
        onConfirm={() => revoke.runAsync({ id })}
        problem={revoke.problem}
      >
        Programs that use the key stop working at once.
      </Confirm>
      {rotate.data && <SecretDialog title="The new key" secret={rotate.data.key} onClose={rotate.reset} />}
    </span>
  );
}
