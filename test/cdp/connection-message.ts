/** A CDP message: a command, its answer, or an event. */
export interface ConnectionMessage {
  id?: number;
  method?: string;
  params?: Readonly<Record<string, unknown>>;
  result?: unknown;
  error?: { readonly code?: number; readonly message: string };
  /** Session of the target. Absent for the browser's own session. */
  sessionId?: string;
}
