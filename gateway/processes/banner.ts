/** Contents of the text that `npm start` prints. */
export interface Welcome {
  readonly url: string;
  readonly grpcAddress: string;
  readonly keyFile: string;
  readonly demoUrl: string;
  /** URL of the console, or of the first-run page if the account has no owner yet. */
  readonly consoleUrl: string;
  /** URL that opens a session with the demo page. */
  readonly tryUrl: string;
  /** URL of the development outbox, if e-mails are not sent. */
  readonly mailsUrl: string | undefined;
  /** Isolation layers that the operator has turned off, if any. */
  readonly weakness: string | undefined;
}

/** Returns the text that `npm start` prints: addresses, and a first session to paste into another terminal. */
export function welcome({
  url,
  grpcAddress,
  keyFile,
  demoUrl,
  consoleUrl,
  tryUrl,
  mailsUrl,
  weakness,
}: Welcome): string {
  return `
Pilothouse is ready.

  REST, Connect, gRPC, WebSocket   ${url}
  gRPC                             ${grpcAddress}
  Reference                        ${url}/docs
  Your API key                     ${keyFile}${mailsUrl ? `\n  E-mails of this service          ${mailsUrl}` : ""}${weakness ? `\n  Weaker isolation                 ${weakness}` : ""}

Open the console${consoleUrl.includes("#") ? ", where you become the owner of this service" : ""}:

  ${consoleUrl}

Or watch a session of your own, and take control:

  ${tryUrl}

Or paste this into another terminal:

  KEY=$(cat ${keyFile}); API=${url}/v1/sessions
  call() { curl -sS -H "Authorization: Bearer $KEY" -H "Content-Type: application/json" "$@"; }
  ID=$(call $API -d '{}' | sed 's/.*"id":"\\([^"]*\\)".*/\\1/'); echo $ID
  call $API/$ID/navigate -d '{"url":"${demoUrl}"}'; echo
  call $API/$ID/interact -d '{"action":{"kind":"type","selector":"#name","text":"Ada"}}'; echo
  call $API/$ID/interact -d '{"action":{"kind":"tap","selector":"#go"}}'; echo
  call $API/$ID/wait -d '{"condition":{"kind":"selector","selector":"#thanks"}}'; echo
  call $API/$ID/capture -d '{"kind":"screenshot"}' | sed 's/.*"data":"\\([^"]*\\)".*/\\1/' | base64 -d > page.png
  call $API/$ID/capture -d '{"kind":"dom_snapshot"}' | sed 's/.*"data":"\\([^"]*\\)".*/\\1/' | base64 -d > page.html
  call $API/$ID/capture -d '{"kind":"pdf"}' | sed 's/.*"data":"\\([^"]*\\)".*/\\1/' | base64 -d > page.pdf
  call -X DELETE $API/$ID

Ctrl-C ends it.
`;
}
