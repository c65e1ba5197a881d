import { watchForParsers } from "./leaks.ts";

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape.
  readonly body: any;
}

/** Calls the REST API of a service with its developer key. A body makes the request a POST. */
export type Rest = (path: string, body?: unknown, init?: RequestInit) => Promise<Answer>;

export function restClient({ url, key }: { url: string; key: string }): Rest {
  return async (path, body, init = {}) => {
    const response = await fetch(`${url}${path}`, {
      method: body === undefined ? "GET" : "POST",
      ...(body !== undefined && { body: JSON.stringify(body) }),
      ...init,
      headers: {
        authorization: `Bearer ${key}`,
        ...(body !== undefined && { "content-type": "application/json" }),
        ...init.headers,
      },
    });
    const text = await response.text();
    if (!response.ok) watchForParsers(text);
    const isJson = response.headers.get("content-type")?.includes("json");
    return { status: response.status, headers: response.headers, body: isJson ? JSON.parse(text) : text };
  };
}
