import { type DescMessage, fromBinary, type Message, toBinary } from "@bufbuild/protobuf";
import { errorTable, isErrorSlug } from "../../platform/error-table.ts";
import { type Extensions, Failure, type FieldFault, fail, restoreFailure } from "../../platform/errors.ts";
import type { Sealer } from "../../platform/secrets/secrets-sealer.ts";
import type { KeyedRequest, StoredOutcome } from "./store.ts";

interface StoredFailure {
  readonly slug: string;
  readonly detail?: string;
  readonly extensions: Extensions;
  readonly errors: readonly FieldFault[];
}

/** Returns whether a failure is permanent. Other failures are not stored, because a retry may succeed. */
export function isPermanentFailure(thrown: unknown): thrown is Failure {
  return thrown instanceof Failure && errorTable[thrown.slug].status < 500 && thrown.slug !== "rate-limited";
}

/** Creates the codec of sealed outcomes. */
export function createOutcomes(sealer: Sealer) {
  const contextOf = ({ accountId, key }: Pick<KeyedRequest, "accountId" | "key">) => ({
    accountId,
    purpose: `answer kept for ${key}`,
  });

  return {
    write(
      request: Pick<KeyedRequest, "accountId" | "key">,
      output: DescMessage,
      outcome: Message | Failure,
    ): StoredOutcome {
      const seal = (bytes: Uint8Array) => sealer.seal(bytes, contextOf(request));
      if (!(outcome instanceof Failure)) return { answer: seal(toBinary(output, outcome)), failure: null };
      const { slug, detail, extensions, errors } = outcome;
      const stored: StoredFailure = { slug, extensions, errors, ...(detail !== undefined && { detail }) };
      return { answer: null, failure: seal(Buffer.from(JSON.stringify(stored))) };
    },
    /** Returns undefined if there is no outcome yet. */
    read(
      request: Pick<KeyedRequest, "accountId" | "key">,
      output: DescMessage,
      { answer, failure }: StoredOutcome,
    ): Message | Failure | undefined {
      const open = (bytes: Buffer) => sealer.open(bytes, contextOf(request));
      if (failure) return toFailure(open(failure).toString());
      return answer ? fromBinary(output, open(answer)) : undefined;
    },
  };
}

function toFailure(json: string): Failure {
  const { slug, detail, extensions, errors }: StoredFailure = JSON.parse(json);
  if (!isErrorSlug(slug)) return fail("internal");
  return restoreFailure(slug, extensions, { errors, ...(detail !== undefined && { detail }) });
}
