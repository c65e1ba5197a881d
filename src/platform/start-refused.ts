/** The service cannot run here as things are; the message says in a sentence why, and what to do. */
export class StartRefused extends Error {
  override readonly name = "StartRefused";
}
