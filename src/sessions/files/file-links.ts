import { create } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { type HttpBody, HttpBodySchema } from "../../gen/google/api/httpbody_pb.ts";
import {
  type CreateFileLinkRequest,
  type FileLink,
  FileLinkMethod,
  FileLinkSchema,
} from "../../gen/pilothouse/v1/file_pb.ts";
import { authorizeGrant } from "../../identity/api-keys/grants.ts";
import type { Call, FileLinkGrant } from "../../kernel/call.ts";
import { fail } from "../../platform/errors.ts";
import type { PlatformParts } from "../../platform/platform-parts.ts";
import { hashSecret } from "../../platform/secrets/secrets.ts";
import type { Sessions } from "../sessions.ts";
import { assertFileName } from "./file-calls.ts";
import { fileLinkText, insertFileLink, isUnused, releaseFileLink, scopeOfLink, useFileLink } from "./link-store.ts";

/** Milliseconds for which a link is valid. */
const validForMs = 600_000;

export interface FileLinkParts extends Pick<PlatformParts, "db" | "clock"> {
  readonly sessions: Pick<Sessions, "assertRunning">;
  readonly config: { readonly publicUrl: string };
}

interface LinkedFile {
  /** Identifier of the session. */
  readonly id: string;
  readonly name: string;
}

/** Use of a link by an upload. If the upload does not succeed, the link can be used again. */
interface LinkUse extends AsyncDisposable {
  succeed(): void;
}

const used = () => fail("expired-key", {}, { detail: "the link was already used: request a new link" });

/** Returns the caller's link, if any. Throws `not-found` if the link is for another file or method. */
function linkOf({ principal }: Call, file: LinkedFile, method: FileLinkGrant["method"]): FileLinkGrant | undefined {
  const { fileLink: link, sessionId } = principal;
  if (!link || (sessionId === file.id && link.name === file.name && link.method === method)) return link;
  throw fail("not-found", {}, { detail: `the link is for another file, or does not allow ${method.toUpperCase()}` });
}

/** Creates the functions for one-time links to files. Callers without a link are not limited to one file. */
export function createFileLinks({ db, clock, sessions, config }: FileLinkParts) {
  return {
    async create(call: Call, { id: sessionId, name, method }: CreateFileLinkRequest): Promise<FileLink> {
      assertFileName(name);
      await sessions.assertRunning(call, sessionId);
      const { principal } = call;
      const verb = method === FileLinkMethod.PUT ? "put" : "get";
      const token = { id: call.ids.next("fln"), secret: fileLinkText.newSecret() };
      const expiresAt = new Date(clock.now() + validForMs);
      const createdBy = principal.kind === "key" ? principal.keyId : principal.loginId;
      return call.commit(async (tx) => {
        await authorizeGrant(tx, principal, { scopes: [scopeOfLink(verb)] });
        const secretHash = hashSecret(token.secret);
        await insertFileLink(tx, { id: token.id, sessionId, createdBy, name, method: verb, secretHash, expiresAt });
        call.audit(tx, { subject: sessionId, data: { name, method: verb, link_id: token.id } });
        const path = `/v1/sessions/${sessionId}/files/${encodeURIComponent(name)}/link/${fileLinkText.write(token)}`;
        return create(FileLinkSchema, {
          url: config.publicUrl + path,
          method: verb === "put" ? FileLinkMethod.PUT : FileLinkMethod.GET,
          expiresAt: timestampFromDate(expiresAt),
        });
      });
    },

    /** Marks the caller's link as used, if any. Throws `expired-key` if the link was used before. */
    async begin(call: Call, { method, ...file }: LinkedFile & Pick<FileLinkGrant, "method">): Promise<LinkUse> {
      const link = linkOf(call, file, method);
      if (link && !(await useFileLink(db, link.id))) throw used();
      let isOver = link === undefined;
      return {
        succeed() {
          isOver = true;
        },
        async [Symbol.asyncDispose]() {
          if (link && !isOver) await releaseFileLink(db, link.id);
        },
      };
    },

    /**
     * Yields a file. Marks the caller's link as used when bytes are read, so that a HEAD request does not use the link.
     * Throws `expired-key` if the link was used before.
     */
    async *readOnce(call: Call, file: LinkedFile, bodies: AsyncIterable<HttpBody>): AsyncGenerator<HttpBody> {
      const link = linkOf(call, file, "get");
      if (link && !(await isUnused(db, link.id))) throw used();
      let isBegun = link === undefined;
      for await (const body of bodies) {
        if (link && !isBegun) {
          isBegun = true;
          yield create(HttpBodySchema, { contentType: body.contentType });
          if (!(await useFileLink(db, link.id))) throw used();
        }
        yield body;
      }
    },
  };
}
