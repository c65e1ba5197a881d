/** Writes `load_state` or `not-found` as `LoadState` or `NotFound`. */
export function pascalCase(name: string): string {
  return name
    .split(/[_-]/)
    .map((word) => word.slice(0, 1).toUpperCase() + word.slice(1))
    .join("");
}
