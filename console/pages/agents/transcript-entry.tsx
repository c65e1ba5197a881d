import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import {
  type TranscriptAction,
  type TranscriptEntry,
  TranscriptRole,
  type TranscriptText,
} from "../../../src/gen/pilothouse/v1/agent_turn_pb.ts";
import { toSentence } from "../../api/problem.ts";
import { requestRaw } from "../../api/raw-files.ts";
import { classes } from "../../ui/classes.ts";
import { Code, CopyIcon } from "../../ui/copy.tsx";

const authors: Readonly<Record<TranscriptRole, string>> = {
  [TranscriptRole.UNSPECIFIED]: "",
  [TranscriptRole.USER]: "You",
  [TranscriptRole.AGENT]: "Agent",
  [TranscriptRole.HUMAN]: "Person in control",
  [TranscriptRole.SYSTEM]: "Recipe",
};

interface EntryProps {
  readonly agentId: string;
  readonly entry: TranscriptEntry;
  /** Called when a step is opened to be read. */
  readonly onOpen: () => void;
}

/** An entry of a transcript. */
export function Entry({ agentId, entry, onOpen }: EntryProps) {
  const { id, role, content } = entry;
  switch (content.case) {
    case "text":
      return <Message role={role} text={content.value} />;
    case "action":
      return <Step agentId={agentId} stepId={id} role={role} action={content.value} onOpen={onOpen} />;
    case "control": {
      const holder = content.value.control?.holderClientId;
      return (
        <p className="text-center text-xs text-faint">
          {holder === undefined ? "Control was handed back" : "A person took control"}
        </p>
      );
    }
    default:
      return null;
  }
}

function Message({ role, text: { text, output } }: { readonly role: TranscriptRole; readonly text: TranscriptText }) {
  const isOwn = role === TranscriptRole.USER;
  return (
    <div className={classes("flex flex-col gap-1", isOwn && "items-end")}>
      <span className="sr-only">{authors[role]}:</span>
      {text !== "" && (
        <p
          className={classes(
            "max-w-[92%] text-sm break-words whitespace-pre-wrap",
            isOwn && "rounded-2xl rounded-br-md bg-accent-wash px-3.5 py-2",
          )}
        >
          {text}
        </p>
      )}
      {output && <Result output={output} />}
    </div>
  );
}

const isRow = (value: JsonValue): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** A result as a table if it is a list of rows, else as JSON. */
function Result({ output }: { readonly output: JsonObject }) {
  const rows = Object.values(output).find((value) => Array.isArray(value) && value.length > 0 && value.every(isRow));
  if (!Array.isArray(rows)) return <Code text={JSON.stringify(output, null, 2)} label="the result" />;
  const table = rows.filter(isRow);
  const columns = [...new Set(table.flatMap((row) => Object.keys(row)))];
  const textOfCell = (value: JsonValue | undefined): string =>
    typeof value === "string" ? value : JSON.stringify(value ?? null);
  const lines = [columns, ...table.map((row) => columns.map((name) => textOfCell(row[name])))];
  const text = lines.map((cells) => cells.map((cell) => cell.replaceAll(/\s+/g, " ")).join("\t")).join("\n");
  return (
    <section
      aria-label="Result"
      // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable region must be reachable by keyboard
      tabIndex={0}
      className="relative w-full overflow-x-auto rounded-lg border border-line"
    >
      <CopyIcon text={text} label="the table for a spreadsheet" className="absolute top-1 right-1" />
      <table className="w-full text-left text-xs">
        <thead>
          <tr className="border-b border-line text-faint">
            {columns.map((name) => (
              <th key={name} scope="col" className="px-3 py-2 font-medium">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {table.map((row) => (
            <tr key={JSON.stringify(row)} className="border-b border-line last:border-0">
              {columns.map((name) => (
                <td key={name} className="px-3 py-1.5">
                  {textOfCell(row[name])}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

interface StepProps {
  readonly agentId: string;
  readonly stepId: string;
  readonly role: TranscriptRole;
  readonly action: TranscriptAction;
  readonly onOpen: () => void;
}

function summaryOf({ arguments: given }: TranscriptAction): string {
  const values = Object.values(given ?? {}).filter((value) => typeof value === "string" || typeof value === "number");
  return values.join(" · ").slice(0, 160);
}

function Step({ agentId, stepId, role, action, onOpen }: StepProps) {
  const { name, durationMs, error, screenshotPath } = action;
  const [isOpen, setOpen] = useState(false);
  return (
    <details
      className={classes("rounded-lg border text-xs", error ? "border-bad/40" : "border-line")}
      onToggle={({ currentTarget }) => {
        setOpen(currentTarget.open);
        if (currentTarget.open) onOpen();
      }}
    >
      <summary className="flex items-baseline gap-2 rounded-lg px-3 py-2 hover:bg-hover">
        <code className="font-mono font-medium">{name}</code>
        <span className="min-w-0 flex-1 truncate text-soft">{summaryOf(action)}</span>
        <span className="text-faint tabular-nums">{(durationMs / 1_000).toFixed(1)} s</span>
      </summary>
      {isOpen && (
        <div className="flex flex-col gap-2 border-t border-line p-3">
          <p className="text-faint">{authors[role]}</p>
          {error && <p className="text-bad">{toSentence(error.detail ?? error.title)}</p>}
          <Code text={JSON.stringify(action.arguments ?? {}, null, 2)} label="the arguments" />
          {screenshotPath !== undefined && <StepPicture agentId={agentId} stepId={stepId} />}
        </div>
      )}
    </details>
  );
}

/** The picture of the page before a step. The service keeps it while the browser runs. */
function StepPicture({ agentId, stepId }: { readonly agentId: string; readonly stepId: string }) {
  const picture = useQuery({
    queryKey: ["step picture", stepId],
    queryFn: async () => (await requestRaw(`/v1/agent-sessions/${agentId}/steps/${stepId}/screenshot`)).blob(),
    staleTime: Number.POSITIVE_INFINITY,
    retry: false,
  });
  const [url, setUrl] = useState<string>();
  useEffect(() => {
    if (!picture.data) return;
    const made = URL.createObjectURL(picture.data);
    setUrl(made);
    return () => URL.revokeObjectURL(made);
  }, [picture.data]);
  if (picture.error) return <p className="text-faint">The picture is no longer kept.</p>;
  return url === undefined ? null : (
    <img src={url} alt="The page before this step" className="rounded-md border border-line" />
  );
}
