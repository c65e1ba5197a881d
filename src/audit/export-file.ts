import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { ActorSchema, type AuditLogEntry, AuditLogEntrySchema, ExportFormat } from "../gen/pilothouse/v1/audit_pb.ts";
import type { Queryable } from "../platform/postgres/database.ts";
import { compileWriter } from "../platform/rest-json/writer.ts";
import { toEntryMessage } from "./entry-message.ts";
import { type EntryFilter, listEntries, readAuditEntries } from "./store.ts";

/** Maximum entries per chunk, which are about 100 kB. */
const pageSize = 250;

const writeEntry = compileWriter(AuditLogEntrySchema);
const writeActor = compileWriter(ActorSchema);

const columns = [
  "id",
  "created_at",
  "action",
  "actor_type",
  "actor_id",
  "actor_name",
  "subject_id",
  "request_id",
  "ip_address",
  "user_agent",
  "details",
];

/** Matches the start of a spreadsheet formula (OWASP, CSV injection). */
const formula = /^[=+\-@\t\r\n]/;

/** Formats a cell (RFC 4180). Prefixes formulas with an apostrophe. */
function cell(value: JsonValue | undefined): string {
  if (value === undefined || value === null) return "";
  const plain = typeof value === "object" ? JSON.stringify(value) : String(value);
  const text = formula.test(plain) ? `'${plain}` : plain;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

function csvLine(entry: AuditLogEntry): string {
  const { type = null, id = null, name = null } = entry.actor ? writeActor(entry.actor) : {};
  const cells: JsonObject = { ...writeEntry(entry), actor_type: type, actor_id: id, actor_name: name };
  return `${columns.map((name) => cell(cells[name])).join(",")}\r\n`;
}

export interface FileFormat {
  readonly contentType: string;
  readonly extension: string;
  readonly head: string;
  line(entry: AuditLogEntry): string;
}

const csv: FileFormat = {
  contentType: "text/csv; charset=utf-8; header=present",
  extension: "csv",
  head: `${columns.join(",")}\r\n`,
  line: csvLine,
};

const jsonl: FileFormat = {
  contentType: "application/x-ndjson; charset=utf-8",
  extension: "jsonl",
  head: "",
  line: (entry) => `${JSON.stringify(writeEntry(entry))}\n`,
};

/** Returns the file format of a request. Default: CSV. */
export function formatOf(format: ExportFormat): FileFormat {
  return format === ExportFormat.JSONL ? jsonl : csv;
}

/**
 * Yields an export of the current entries in chunks. Reads each chunk after the consumer took the previous one, so a
 * slow client holds no transaction and only one chunk in memory.
 */
export async function* writeFile(
  db: Queryable,
  filter: EntryFilter,
  { head, line }: FileFormat,
): AsyncGenerator<Buffer> {
  const [newest] = await listEntries(db, filter, { cursor: undefined, limit: 1 });
  let start = head;
  for (let after = ""; newest && after < newest.id; ) {
    const rows = await readAuditEntries(db, filter, { after, last: newest.id, limit: pageSize });
    yield Buffer.from(start + rows.map((row) => line(toEntryMessage(row))).join(""));
    start = "";
    // Ends the export if the remaining entries were deleted meanwhile.
    after = rows.at(-1)?.id ?? newest.id;
  }
  if (!newest) yield Buffer.from(start);
}
