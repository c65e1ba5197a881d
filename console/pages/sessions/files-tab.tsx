import { useMutation } from "@tanstack/react-query";
import { Download, FileText, Trash2, Upload } from "lucide-react";
import { useRef } from "react";
import { FileService, FileSource, type SessionFile } from "../../../src/gen/pilothouse/v1/file_pb.ts";
import { useList } from "../../api/lists.ts";
import { problemOf, toSentence } from "../../api/problem.ts";
import { useChange } from "../../api/queries.ts";
import { requestRaw, saveFile } from "../../api/raw-files.ts";
import { Button, IconButton } from "../../ui/button.tsx";
import { bytesText } from "../../ui/bytes.ts";
import { Card } from "../../ui/card.tsx";
import { List } from "../../ui/list.tsx";
import { EmptyState, ProblemNotice } from "../../ui/state.tsx";
import type { Column } from "../../ui/table.tsx";
import { Ago } from "../../ui/time.tsx";
import { toast } from "../../ui/toast.tsx";

const sources: Readonly<Record<FileSource, string>> = {
  [FileSource.UNSPECIFIED]: "",
  [FileSource.UPLOAD]: "Uploaded",
  [FileSource.DOWNLOAD]: "Downloaded by a page",
  [FileSource.CAPTURE]: "Captured",
};

const fileColumns: readonly Column<SessionFile>[] = [
  { title: "Name", cell: ({ name }) => <span className="font-medium break-all">{name}</span> },
  { title: "Size", cell: ({ bytes }) => <span className="whitespace-nowrap tabular-nums">{bytesText(bytes)}</span> },
  { title: "From", from: "sm", cell: ({ source }) => <span className="text-soft">{sources[source]}</span> },
  { title: "Changed", from: "lg", cell: ({ modifiedAt }) => <Ago at={modifiedAt} /> },
];

/** Files that an ended session had. Absent if the service does not know them. */
export function KeptFiles({ sessionId: id }: { readonly sessionId: string }) {
  const list = useList(FileService.method.list, { id });
  if (list.error && problemOf(list.error).slug === "session-destroyed") return null;
  return (
    <Card
      title="Files"
      about="What the session had at its end. The contents are deleted, and this list is kept for 7 days."
      isFlush
    >
      <List<SessionFile>
        list={list}
        label="Files"
        keyOf={({ name }) => name}
        columns={fileColumns}
        empty={<p className="p-4 text-sm text-soft">The session had no files.</p>}
      />
    </Card>
  );
}

export function FilesTab({ sessionId: id }: { readonly sessionId: string }) {
  const input = useRef<HTMLInputElement>(null);
  const list = useList(FileService.method.list, { id });
  const pathOf = (name: string): string => `/v1/sessions/${id}/files/${encodeURIComponent(name)}`;
  const remove = useChange(FileService.method.delete, { changes: [FileService] });
  const upload = useMutation({
    mutationFn: (file: File) =>
      requestRaw(pathOf(file.name), {
        method: "PUT",
        headers: { "content-type": "application/octet-stream" },
        body: file,
      }),
    onSuccess: () => list.refetch(),
  });
  const save = (name: string): void => {
    requestRaw(pathOf(name))
      .then(async (answer) => saveFile(name, await answer.blob()))
      .catch((error) => toast(toSentence(problemOf(error).detail), { isFault: true }));
  };
  return (
    <Card
      title="Files"
      about="Downloads of pages, and uploads for their file fields. They are deleted with the session."
      isFlush
      actions={
        <>
          <input
            ref={input}
            type="file"
            aria-label="File to upload"
            className="hidden"
            onChange={({ target }) => {
              const [file] = target.files ?? [];
              if (file) upload.mutate(file);
              target.value = "";
            }}
          />
          <Button size="small" isPending={upload.isPending} onClick={() => input.current?.click()}>
            <Upload size={13} aria-hidden="true" />
            Upload
          </Button>
        </>
      }
    >
      {upload.error && (
        <div className="p-4">
          <ProblemNotice problem={problemOf(upload.error)} />
        </div>
      )}
      <List<SessionFile>
        list={list}
        label="Files"
        keyOf={({ name }) => name}
        columns={[
          ...fileColumns,
          {
            title: "",
            isRight: true,
            cell: ({ name }) => (
              <span className="inline-flex">
                <IconButton size="small" label={`Download ${name}`} onClick={() => save(name)}>
                  <Download size={14} aria-hidden="true" />
                </IconButton>
                <IconButton size="small" label={`Delete ${name}`} onClick={() => remove.run({ id, name })}>
                  <Trash2 size={14} aria-hidden="true" />
                </IconButton>
              </span>
            ),
          },
        ]}
        empty={
          <EmptyState icon={FileText} title="No files">
            What pages download appears here.
          </EmptyState>
        }
      />
    </Card>
  );
}
