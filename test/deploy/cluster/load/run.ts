/** Running load on a service, with counts and failures. */
export interface LoadRun {
  readonly url: string;
  readonly key: string;
  /** Aborts when the load is to end. */
  readonly over: AbortSignal;
  readonly counts: { connections: number; commands: number; events: number; reconnects: number; repeats: number };
  readonly failures: string[];
}

/** Reports the error of a client as a failure. The other clients continue. */
export async function reported(run: LoadRun, client: string, action: Promise<void>): Promise<void> {
  try {
    await action;
  } catch (error) {
    run.failures.push(`${client}: ${error}`);
  }
}
