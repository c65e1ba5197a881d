import { Agent, type IncomingMessage, request } from "node:http";

/** A minimal REST client with keep-alive connections, with little overhead. */
export class Client implements Disposable {
  readonly #url: string;
  readonly #key: string;
  readonly #agent = new Agent({ keepAlive: true });

  constructor({ url, key }: { readonly url: string; readonly key: string }) {
    this.#url = url;
    this.#key = key;
  }

  /** Posts a body and returns the response. Throws unless the status is 2xx. */
  async post<Answer>(path: string, body: object): Promise<Answer> {
    // Casts JSON to the response type that the caller expects.
    return JSON.parse(await readText(await this.open("POST", path, body))) as Answer;
  }

  /** Returns the response to a GET. Throws unless the status is 2xx. */
  async get<Answer>(path: string): Promise<Answer> {
    // Casts as `post` does.
    return JSON.parse(await readText(await this.open("GET", path))) as Answer;
  }

  /** Creates a session and returns its path. */
  async create(body: object = {}): Promise<string> {
    const { id } = await this.post<{ id: string }>("/v1/sessions", body);
    return `/v1/sessions/${id}`;
  }

  async destroy(path: string): Promise<void> {
    await readText(await this.open("DELETE", path));
  }

  /** Sends a request and returns the response before its body. Throws unless the status is 2xx. */
  async open(method: string, path: string, body?: object): Promise<IncomingMessage> {
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
    const text = body && JSON.stringify(body);
    const headers = {
      authorization: `Bearer ${this.#key}`,
      ...(text !== undefined && { "content-type": "application/json", "content-length": Buffer.byteLength(text) }),
    };
    request(`${this.#url}${path}`, { method, agent: this.#agent, headers }, resolve).once("error", reject).end(text);
    const response = await promise;
    if ((response.statusCode ?? 0) >= 300) {
      throw new Error(`${method} ${path}: ${response.statusCode} ${await readText(response)}`);
    }
    return response;
  }

  [Symbol.dispose](): void {
    this.#agent.destroy();
  }
}

async function readText(response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of response) chunks.push(chunk);
  return Buffer.concat(chunks).toString("utf8");
}
