import { Agent, type IncomingMessage, request } from "node:http";

/** A REST client with kept connections, as thin as node makes one, so that its own time weighs little. */
export class Client implements Disposable {
  readonly #url: string;
  readonly #key: string;
  readonly #agent = new Agent({ keepAlive: true });

  constructor({ url, key }: { readonly url: string; readonly key: string }) {
    this.#url = url;
    this.#key = key;
  }

  /** Sends a body by POST and gives the answer; throws for one that is no success. */
  async post<Answer>(path: string, body: object): Promise<Answer> {
    // The boundary where JSON becomes what the caller knows that the endpoint answers.
    return JSON.parse(await readText(await this.open("POST", path, body))) as Answer;
  }

  /** Gives the answer to a GET; throws for one that is no success. */
  async get<Answer>(path: string): Promise<Answer> {
    // The same boundary.
    return JSON.parse(await readText(await this.open("GET", path))) as Answer;
  }

  /** Creates a session; gives its path. */
  async create(body: object = {}): Promise<string> {
    const { id } = await this.post<{ id: string }>("/v1/sessions", body);
    return `/v1/sessions/${id}`;
  }

  /** Destroys a session. */
  async destroy(path: string): Promise<void> {
    await readText(await this.open("DELETE", path));
  }

  /** Sends a request and gives its response before the body is read; throws for one that is no success. */
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
