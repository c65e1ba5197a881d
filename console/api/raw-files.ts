import { accessToken, RequestRefused } from "./session-login.ts";

/** Requests raw bytes from the REST API, which the generated clients do not serve as files. */
export async function requestRaw(path: string, init: RequestInit = {}): Promise<Response> {
  const token = await accessToken();
  const answer = await fetch(path, { ...init, headers: { ...init.headers, authorization: `Bearer ${token ?? ""}` } });
  if (!answer.ok) throw new RequestRefused(await answer.json().catch(() => ({})));
  return answer;
}

/** Saves bytes as a file of the person. */
export function saveFile(name: string, blob: Blob): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}
