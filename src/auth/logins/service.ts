import { create } from "@bufbuild/protobuf";
import { EmptySchema, timestampFromDate } from "@bufbuild/protobuf/wkt";
import { ListLoginsResponseSchema, type LoginService, OpenLoginSchema } from "../../gen/pilothouse/v1/login_pb.ts";
import { loginOf } from "../../kernel/call.ts";
import type { ServiceImplementation } from "../../kernel/registry.ts";
import { fail } from "../../platform/errors.ts";
import { idPattern } from "../../platform/ids.ts";
import { cutPage, readCursor } from "../../platform/list-page.ts";
import type { Database } from "../../platform/postgres/database.ts";
import type { Logins } from "./logins.ts";

export interface LoginServiceParts {
  readonly db: Database;
  readonly logins: Logins;
}

const defaultPage = 20;

const loginId = idPattern("lgn");

export function createLoginService({ db, logins }: LoginServiceParts): ServiceImplementation<typeof LoginService> {
  return {
    async list(call, { limit = defaultPage, cursor }) {
      const own = loginOf(call);
      const found = await logins.list({ userId: own.userId, before: readCursor(cursor, loginId), limit: limit + 1 });
      const { rows, position } = cutPage(found, limit);
      const data = rows.map((row) =>
        create(OpenLoginSchema, {
          id: row.id,
          current: row.id === own.loginId,
          ipAddress: row.client_address,
          userAgent: row.user_agent,
          createdAt: timestampFromDate(row.created_at),
          lastUsedAt: timestampFromDate(row.last_used_at),
          endsAt: timestampFromDate(row.ends_at),
        }),
      );
      return create(ListLoginsResponseSchema, { data, ...position });
    },

    async end(call, { id }) {
      const { userId } = loginOf(call);
      await db.transaction(async (tx) => {
        const [ended] = await logins.end(tx, { userId, id });
        if (ended === undefined) throw fail("not-found", {}, { detail: "no active login has this id" });
        call.audit(tx, { subject: ended });
      });
      return create(EmptySchema);
    },
  };
}
