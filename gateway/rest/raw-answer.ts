import type { Message } from "@bufbuild/protobuf";
import type { HttpBody } from "../../src/gen/google/api/httpbody_pb.ts";
import type { ServedMethod } from "../../src/kernel/registry.ts";

// Stored customer files must never run as a page of the service.
const harmless = { "x-content-type-options": "nosniff", "content-security-policy": "sandbox; default-src 'none'" };

/** Casts the response of a raw method to the type that its descriptor declares. */
export function asHttpBody(message: Message): HttpBody {
  return message as HttpBody;
}

/**
 * Compiles a function that returns the headers of a raw response. The option `attachment` is the file name, or the path
 * variable that contains it, in braces.
 */
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

/** Returns a Content-Disposition with the full name, and an ASCII name for old clients (RFC 6266, appendix D). */
function disposition(name: string): string {
  const plain = name.replace(/[^ -~]|["\\%]/g, "_");
  const full = encodeURIComponent(name.toWellFormed()).replace(
    /['()*]/g,
    (char) => `%${char.charCodeAt(0).toString(16)}`,
  );
  return `attachment; filename="${plain}"; filename*=UTF-8''${full}`;
}

/** Yields the bytes of a streamed raw response, starting with the first message. */
export async function* streamBytes(
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
