import type { Problem } from "./messages.ts";

export interface TransferParts {
  readonly token: string;
  readonly viewerKey: string;
  /** The session that is shown; undefined before that is known. */
  sessionId(): string | undefined;
}

/** Files between the viewer's machine and the session, beside the stream: who is on both ends is the same. */
export interface Transfers {
  /** Gives a file to the session, and gives the name that it has there. Rejects with why not. */
  give(file: File, signal: AbortSignal): Promise<string>;
  /** Fetches a download of the session's. Rejects with why not. */
  fetch(name: string): Promise<Blob>;
}

export function createTransfers({ token, viewerKey, sessionId }: TransferParts): Transfers {
  async function ask(name: string, init: RequestInit): Promise<Response> {
    const path = `/v1/sessions/${sessionId()}/live/files/${encodeURIComponent(name)}`;
    const headers = { authorization: `Bearer ${token}`, "x-viewer-key": viewerKey };
    const answer = await fetch(path, { ...init, headers });
    if (answer.ok) return answer;
    const { detail, title }: Problem = await answer.json();
    throw new Error(detail ?? title ?? answer.statusText);
  }

  return {
    async give(file, signal) {
      const { name }: { readonly name: string } = await (
        await ask(file.name, { method: "PUT", body: file, signal })
      ).json();
      return name;
    },
    fetch: async (name) => (await ask(name, {})).blob(),
  };
}
