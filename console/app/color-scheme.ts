/** `system` follows the setting of the device. */
export type ColorScheme = "system" | "light" | "dark";

const key = "pilothouse.color-scheme";
const prefersDark = matchMedia("(prefers-color-scheme: dark)");

/** Returns the chosen scheme. */
export function chosenScheme(): ColorScheme {
  const chosen = localStorage.getItem(key);
  return chosen === "light" || chosen === "dark" ? chosen : "system";
}

/** Shows the pages in the chosen scheme, now and when the device changes. */
export function applyScheme(): void {
  const chosen = chosenScheme();
  const shown = chosen === "system" ? (prefersDark.matches ? "dark" : "light") : chosen;
  const { dataset } = document.documentElement;
  // Disables transitions during the switch, because elements fade at different speeds.
  dataset.switching = "";
  dataset.scheme = shown;
  requestAnimationFrame(() => requestAnimationFrame(() => delete dataset.switching));
}

export function chooseScheme(scheme: ColorScheme): void {
  if (scheme === "system") localStorage.removeItem(key);
  else localStorage.setItem(key, scheme);
  applyScheme();
}

prefersDark.addEventListener("change", applyScheme);
