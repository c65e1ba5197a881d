import type { Message } from "@bufbuild/protobuf";
import type { HttpBody } from "../../src/gen/google/api/httpbody_pb.ts";
import type { ServedMethod } from "../../src/kernel/registry.ts";

// What customers have stored must never act as a page of ours.
const harmless = { "x-content-type-options": "nosniff", "content-security-policy": "sandbox; default-src 'none'" };

/** The boundary where a message of a method that answers raw is what its descriptor says. */
export function asHttpBody(message: Message): HttpBody {
  return message as HttpBody;
}

/** Compiles the headers of a raw answer to a request with some path variables. */
export function compileRawHeaders({ rules: { attachment } }: ServedMethod) {
  const variable = /^\{(\w+)\}$/.exec(attachment)?.[1];
  return (variables: Readonly<Record<string, string>>, contentType: string): Record<string, string> => {
    const name = variable === undefined ? attachment : (variables[variable] ?? "");
    return {
      ...harmless,
      "content-type": contentType || "application/octet-stream",
      ...(name !== "" && { "content-disposition": disposition(name) }),
    };
  };
}

/** Content-Disposition with the name in full, and in ASCII for old clients (RFC 6266, appendix D). */
function disposition(name: string): string {
  const plain = name.replace(/[^ -~]|["\\%]/g, "_");
  const full = encodeURIComponent(name.toWellFormed()).replace(
    /['()*]/g,
    (char) => `%${char.charCodeAt(0).toString(16)}`,
  );
  return `attachment; filename="${plain}"; filename*=UTF-8''${full}`;
}

/** The bytes of a raw answer that is streamed: those of its first message, then of the others. */
export async function* bytesOf(
  first: IteratorResult<Message>,
  rest: AsyncIterator<Message>,
): AsyncGenerator<Uint8Array> {
  try {
    for (let next = first; !next.done; next = await rest.next()) {
      const { data } = asHttpBody(next.value);
      if (data.length > 0) yield data;
    }
  } finally {
    await rest.return?.();
  }
}
