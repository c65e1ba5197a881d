import { create } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { AcceptLegalResponseSchema, LegalRevisionSchema, type LegalService } from "../gen/pilothouse/v1/legal_pb.ts";
import type { ServiceImplementation } from "../kernel/registry.ts";
import type { Clock } from "../platform/clock.ts";
import { fail } from "../platform/errors.ts";
import { insertAcceptance } from "./store.ts";
import { notAcceptable, type Terms } from "./terms.ts";

export interface LegalServiceParts {
  readonly clock: Clock;
  readonly legal: Terms;
}

export function createLegalService({ clock, legal }: LegalServiceParts): ServiceImplementation<typeof LegalService> {
  return {
    async getCurrentLegal() {
      const revision = await legal.current();
      if (!revision) throw fail("not-found", {}, { detail: "no terms have been published" });
      return create(LegalRevisionSchema, {
        revisionId: revision.id,
        url: revision.url,
        publishedAt: timestampFromDate(revision.published_at),
        effectiveAt: timestampFromDate(revision.effective_at),
      });
    },

    acceptLegal: (call, { revisionId }) =>
      call.commit(async (tx) => {
        const { principal } = call;
        const { accountId } = principal;
        if (principal.kind === "login" && principal.role === "member")
          throw fail(
            "forbidden",
            {},
            { detail: "only an owner or an admin of the account can accept its terms: ask one of them" },
          );
        if (!(await legal.acceptable(revisionId))) throw notAcceptable();
        const acceptedAt = await insertAcceptance(tx, { accountId, revisionId, at: new Date(clock.now()) });
        call.audit(tx, { subject: revisionId });
        return create(AcceptLegalResponseSchema, { revisionId, acceptedAt: timestampFromDate(acceptedAt) });
      }),
  };
}
