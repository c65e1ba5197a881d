/** Formats a count with its noun: `1 session`, `2 sessions`. */
export function counted(count: number | bigint, noun: string): string {
  if (Number(count) === 1) return `${count} ${noun}`;
  return noun.endsWith("ry") ? `${count} ${noun.slice(0, -1)}ies` : `${count} ${noun}s`;
}
