/** Reads an application/x-www-form-urlencoded body as the JSON object that it stands for. */
export function parseForm(body: Buffer): unknown {
  return Object.fromEntries(new URLSearchParams(body.toString("utf8")));
}
