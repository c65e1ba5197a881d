import { create } from "@bufbuild/protobuf";
import { HttpBodySchema } from "../gen/google/api/httpbody_pb.ts";
import { type AuditService, ListAuditLogResponseSchema } from "../gen/pilothouse/v1/audit_pb.ts";
import type { ServiceImplementation } from "../kernel/registry.ts";
import { idPattern } from "../platform/ids.ts";
import { cutPage, readCursor } from "../platform/list-page.ts";
import type { Database } from "../platform/postgres/database.ts";
import { readFilter } from "./entry-filter.ts";
import { toEntryMessage } from "./entry-message.ts";
import { formatOf, writeFile } from "./export-file.ts";
import { listEntries } from "./store.ts";

const defaultPage = 20;

const entryId = idPattern("aud");

export function createAuditService(db: Database): ServiceImplementation<typeof AuditService> {
  return {
    async listAuditLog({ principal }, { limit = defaultPage, cursor, ...request }) {
      const page = { cursor: readCursor(cursor, entryId), limit: limit + 1 };
      const found = await listEntries(db, readFilter(principal.accountId, request), page);
      const { rows, position } = cutPage(found, limit);
      return create(ListAuditLogResponseSchema, { data: rows.map(toEntryMessage), ...position });
    },
    async *exportAuditLog(call, request) {
      const format = formatOf(request.format);
      const { contentType, extension } = format;
      call.setHeader("content-disposition", `attachment; filename="audit-log.${extension}"`);
      for await (const data of writeFile(db, readFilter(call.principal.accountId, request), format))
        yield create(HttpBodySchema, { contentType, data });
    },
  };
}
