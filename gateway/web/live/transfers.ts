import type { Problem } from "./messages.ts";

export interface TransferParts {
  readonly token: string;
  readonly viewerKey: string;
  /** Id of the shown session, once known. */
  sessionId(): string | undefined;
}

/** File transfers between the viewer's machine and the session, outside the stream but with its credentials. */
export interface Transfers {
  /** Uploads a file, and returns its name in the session. Rejects with the reason of a refusal. */
  upload(file: File, signal: AbortSignal): Promise<string>;
  /** Downloads a file of the session. Rejects with the reason of a refusal. */
  fetch(name: string): Promise<Blob>;
}

export function createTransfers({ token, viewerKey, sessionId }: TransferParts): Transfers {
  async function request(name: string, init: RequestInit): Promise<Response> {
    const path = `/v1/sessions/${sessionId()}/live/files/${encodeURIComponent(name)}`;
    const headers = { authorization: `Bearer ${token}`, "x-viewer-key": viewerKey };
    const answer = await fetch(path, { ...init, headers });
    if (answer.ok) return answer;
    const { detail, title }: Problem = await answer.json();
    throw new Error(detail ?? title ?? answer.statusText);
  }

  return {
    async upload(file, signal) {
      const { name }: { readonly name: string } = await (
        await request(file.name, { method: "PUT", body: file, signal })
      ).json();
      return name;
    },
    fetch: async (name) => (await request(name, {})).blob(),
  };
}
