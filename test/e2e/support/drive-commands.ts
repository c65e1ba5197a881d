/** Command of a Drive stream, with field names of the proto. */
export interface DriveCommand {
  readonly id: string;
  readonly [command: string]: unknown;
}

export interface DriveAnswer {
  readonly id?: string | undefined;
  readonly error?: unknown;
  readonly event?: unknown;
}

/** Returns twenty commands of all kinds. Command "8" fails. */
export function twentyCommands(url: string): readonly DriveCommand[] {
  return Array.from({ length: 20 }, (_, index) => {
    const id = String(index + 1);
    if (index === 0) return { id, navigate: { url } };
    if (index === 7) return { id, interact: { scroll: { selector: "###", dy: 1 } } };
    if (index % 5 === 0) return { id, interact: { scroll: { dy: 10 } } };
    if (index % 3 === 0) return { id, wait: { load_state: {} } };
    return { id, state: {} };
  });
}

/** Returns the IDs of the responses in order of arrival, with failures marked. */
export function orderOf(answers: readonly DriveAnswer[]): string[] {
  return answers.filter(({ id, event }) => id && !event).map(({ id, error }) => (error ? `${id} failed` : `${id}`));
}

/** Result of `orderOf` for `twentyCommands`. */
export const twentyInOrder = Array.from({ length: 20 }, (_, index) => (index === 7 ? "8 failed" : String(index + 1)));
