/** A message of the DevTools protocol: a command, its answer, or an event. */
export interface WireMessage {
  id?: number;
  method?: string;
  params?: Readonly<Record<string, unknown>>;
  result?: unknown;
  error?: { readonly code?: number; readonly message: string };
  /** The target's session; absent for the browser's own. */
  sessionId?: string;
}
