/** One command of a Drive stream, in the names of the proto. */
export interface DriveCommand {
  readonly id: string;
  readonly [command: string]: unknown;
}

/** An answer of a Drive stream, as far as its order is looked at. */
export interface DriveAnswer {
  readonly id?: string | undefined;
  readonly error?: unknown;
  readonly event?: unknown;
}

/** Twenty commands of all kinds; the one named "8" cannot be done. */
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

/** The ids of the answers in the order in which they came, with those that were errors marked. */
export function orderOf(answers: readonly DriveAnswer[]): string[] {
  return answers.filter(({ id, event }) => id && !event).map(({ id, error }) => (error ? `${id} failed` : `${id}`));
}

/** What `orderOf` gives for `twentyCommands`. */
export const twentyInOrder = Array.from({ length: 20 }, (_, index) => (index === 7 ? "8 failed" : String(index + 1)));
