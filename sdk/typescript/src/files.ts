import type { SessionFile } from "./gen/schema.ts";
import { paginate } from "./pagination.ts";
import type { CallOptions, RequestContent, Transport } from "./transport.ts";

/** Files of a session: uploads for its pages, and downloads from them. */
export class SessionFiles {
  readonly #transport: Transport;
  readonly #path: string;

  constructor(transport: Transport, sessionPath: string) {
    this.#transport = transport;
    this.#path = `${sessionPath}/files`;
  }

  /** Iterates over all files. `limit` is the size of a page. */
  list(query: { readonly limit?: number } = {}, options?: CallOptions): AsyncGenerator<SessionFile, void> {
    return paginate(this.#transport, this.#path, query, options);
  }

  /** Stores a file, which replaces one of the same name. A stream is sent as it is read, and never retried. */
  put(name: string, content: NonNullable<RequestContent["content"]>, options?: CallOptions): Promise<SessionFile> {
    return this.#transport.json("PUT", this.#pathOf(name), { content }, options);
  }

  /** Returns the content of a file as a stream. */
  async stream(name: string, options?: CallOptions): Promise<ReadableStream<Uint8Array>> {
    const { body } = await this.#transport.raw("GET", this.#pathOf(name), {}, options);
    return body ?? new Blob().stream();
  }

  /** Returns the content of a file. */
  async get(name: string, options?: CallOptions): Promise<Uint8Array<ArrayBuffer>> {
    return new Uint8Array(await new Response(await this.stream(name, options)).arrayBuffer());
  }

  /** Deletes a file. */
  delete(name: string, options?: CallOptions): Promise<void> {
    return this.#transport.json("DELETE", this.#pathOf(name), {}, options);
  }

  #pathOf(name: string): string {
    return `${this.#path}/${encodeURIComponent(name)}`;
  }
}
