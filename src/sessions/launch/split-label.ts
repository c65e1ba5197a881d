/** Splits `name:value` at the first colon. */
export function splitLabel(label: string): [name: string, value: string] {
  const [name = ""] = label.split(":", 1);
  return [name, label.slice(name.length + 1)];
}
