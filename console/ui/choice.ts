/** Returns the choice that a select element has as text. */
export function choiceOf<T extends number>(choices: readonly (readonly [T, string])[], text: unknown): T {
  const found = choices.find(([value]) => String(value) === String(text));
  if (!found) throw new Error("expected one of the offered choices");
  return found[0];
}
