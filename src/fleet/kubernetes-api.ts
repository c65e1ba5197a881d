import { readFile } from "node:fs/promises";
import { request } from "node:https";
import { join } from "node:path";
import { Deadline } from "../platform/deadline.ts";

/** API server of the cluster, and the directory with the token of the pod's service account. */
export interface ClusterAccess {
  readonly host: string;
  readonly port: number;
  readonly directory: string;
}

/** Thrown if the API server responds with a status other than 2xx. */
export class KubernetesError extends Error {
  override readonly name = "KubernetesError";
  readonly status: number;

  constructor(status: number, text: string) {
    super(`the Kubernetes API responded ${status}: ${text.slice(0, 500)}`);
    this.status = status;
  }
}

/** Timeout of a request in milliseconds, including its response. */
const timeoutMs = 5_000;

/** Maximum number of bytes of a response: 500 pods of 32 KiB. */
const maxBytes = 16 * 2 ** 20;

/** Directory with the token and the certificate authority in each pod that has a service account. */
export const accountDirectory = "/var/run/secrets/kubernetes.io/serviceaccount";

/** Sends a request. Resolves with the JSON of the response. Reads the token each time, because clusters replace it. */
export async function requestKubernetes(
  { host, port, directory }: ClusterAccess,
  { method, path, patch }: { readonly method: "GET" | "PATCH"; readonly path: string; readonly patch?: object },
): Promise<unknown> {
  const [token, ca] = await Promise.all(["token", "ca.crt"].map((file) => readFile(join(directory, file), "utf8")));
  const type = patch && { "content-type": "application/merge-patch+json" };
  const headers = { authorization: `Bearer ${token?.trim()}`, accept: "application/json", ...type };
  using deadline = new Deadline(timeoutMs, () => new Error(`the Kubernetes API took longer than ${timeoutMs} ms`));
  const { signal } = deadline;
  const { status, text } = await new Promise<{ status: number; text: string }>((resolve, reject) => {
    const sent = request({ host, port, method, path, headers, signal, ...(ca !== undefined && { ca }) }, (response) => {
      const chunks: Buffer[] = [];
      let bytes = 0;
      response.on("data", (chunk: Buffer) => {
        bytes += chunk.length;
        if (bytes > maxBytes) response.destroy(new Error(`expected at most ${maxBytes} bytes from the Kubernetes API`));
        else chunks.push(chunk);
      });
      response.once("error", reject);
      response.once("end", () =>
        resolve({ status: response.statusCode ?? 0, text: Buffer.concat(chunks).toString("utf8") }),
      );
    });
    sent.once("error", reject);
    sent.end(patch && JSON.stringify(patch));
  });
  if (status < 200 || status > 299) throw new KubernetesError(status, text);
  return JSON.parse(text);
}
