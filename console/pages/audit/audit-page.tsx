import { Download, ScrollText } from "lucide-react";
import { useState } from "react";
import { ActorType, type AuditLogEntry, AuditService } from "../../../src/gen/pilothouse/v1/audit_pb.ts";
import { useList } from "../../api/lists.ts";
import { problemOf, toSentence } from "../../api/problem.ts";
import { requestRaw, saveFile } from "../../api/raw-files.ts";
import { Button } from "../../ui/button.tsx";
import { Card, Properties, Property } from "../../ui/card.tsx";
import { Code, Id } from "../../ui/copy.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { TextField, textOf } from "../../ui/field.tsx";
import { List } from "../../ui/list.tsx";
import { Page } from "../../ui/page.tsx";
import { EmptyState } from "../../ui/state.tsx";
import { Ago } from "../../ui/time.tsx";
import { toast } from "../../ui/toast.tsx";

const actorWords: Readonly<Record<ActorType, string>> = {
  [ActorType.UNSPECIFIED]: "Unknown",
  [ActorType.USER]: "Person",
  [ActorType.API_KEY]: "API key",
  [ActorType.SYSTEM]: "The service",
  [ActorType.OPERATOR]: "The operator",
};

const actorText = ({ actor }: AuditLogEntry): string =>
  actor?.name ?? actorWords[actor?.type ?? ActorType.UNSPECIFIED] ?? "Unknown";

interface Filter {
  readonly action?: string;
  readonly subjectId?: string;
}

export function AuditPage() {
  const [filter, setFilter] = useState<Filter>({});
  const [open, setOpen] = useState<AuditLogEntry>();
  const [isSaving, setSaving] = useState(false);
  const list = useList(AuditService.method.listAuditLog, filter);
  const save = (): void => {
    setSaving(true);
    const { action, subjectId } = filter;
    const query = new URLSearchParams({
      format: "csv",
      ...(action !== undefined && { action }),
      ...(subjectId !== undefined && { subject_id: subjectId }),
    });
    requestRaw(`/v1/account/audit-log/export?${query}`)
      .then(async (answer) => saveFile("audit-log.csv", await answer.blob()))
      .catch((error) => toast(toSentence(problemOf(error).detail), { isFault: true }))
      .finally(() => setSaving(false));
  };
  return (
    <Page
      title="Audit log"
      about="Who changed what in this account, for a year."
      actions={
        <Button isPending={isSaving} onClick={save}>
          <Download size={14} aria-hidden="true" />
          Export as CSV
        </Button>
      }
    >
      <form
        aria-label="Filter"
        className="flex flex-wrap items-end gap-3"
        onSubmit={(event) => {
          event.preventDefault();
          const form = new FormData(event.currentTarget);
          const [action, subjectId] = [textOf(form, "action"), textOf(form, "subject")];
          setFilter({ ...(action !== undefined && { action }), ...(subjectId !== undefined && { subjectId }) });
        }}
      >
        <div className="min-w-40 flex-1 sm:max-w-60">
          <TextField label="Action" name="action" placeholder="api_key.create" />
        </div>
        <div className="min-w-40 flex-1 sm:max-w-72">
          <TextField label="Object" name="subject" placeholder="key_..." />
        </div>
        <Button type="submit" className="!h-9">
          Filter
        </Button>
      </form>
      <Card isFlush>
        <List<AuditLogEntry>
          list={list}
          label="Audit log"
          keyOf={({ id }) => id}
          columns={[
            {
              title: "Action",
              cell: (entry) => (
                <button
                  type="button"
                  className="text-left font-mono text-xs font-medium hover:underline"
                  onClick={() => setOpen(entry)}
                >
                  {entry.action}
                  <span className="block font-sans font-normal break-words text-faint sm:hidden">
                    {actorText(entry)}
                  </span>
                </button>
              ),
            },
            {
              title: "By",
              from: "sm",
              cell: (entry) => <span className="break-words">{actorText(entry)}</span>,
            },
            { title: "Object", from: "lg", cell: ({ subjectId }) => <Id value={subjectId} /> },
            { title: "When", isRight: true, cell: ({ createdAt }) => <Ago at={createdAt} /> },
          ]}
          empty={
            <EmptyState icon={ScrollText} title="No entries">
              Nothing matches the filter, or nothing was changed yet.
            </EmptyState>
          }
        />
      </Card>
      {open && <EntryDialog entry={open} onClose={() => setOpen(undefined)} />}
    </Page>
  );
}

function EntryDialog({ entry, onClose }: { readonly entry: AuditLogEntry; readonly onClose: () => void }) {
  const { action, actor, subjectId, requestId, ipAddress, userAgent, details, createdAt } = entry;
  return (
    <Dialog title={action} isOpen onClose={onClose}>
      <Properties>
        <Property name="By">
          {actorWords[actor?.type ?? ActorType.UNSPECIFIED]} {actor?.name}
        </Property>
        <Property name="Object">
          <Id value={subjectId} />
        </Property>
        <Property name="When">
          <Ago at={createdAt} />
        </Property>
        {ipAddress !== undefined && <Property name="Address">{ipAddress}</Property>}
        {userAgent !== undefined && <Property name="Program">{userAgent}</Property>}
        {requestId !== undefined && (
          <Property name="Request">
            <Id value={requestId} />
          </Property>
        )}
      </Properties>
      {details && Object.keys(details).length > 0 && (
        <Code text={JSON.stringify(details, null, 2)} label="the details" className="mt-4" />
      )}
    </Dialog>
  );
}
