import { descendantsOf, listProcesses } from "./process-list.ts";

/** Kills every browser that this process has started, as if it had crashed. */
export function killBrowsers(): void {
  kill((command) => command.includes("--remote-debugging-pipe") && !command.includes("--type="));
}

/** Kills the renderers of every browser that this process has started: their pages crash. */
export function killRenderers(): void {
  kill((command) => command.includes("--type=renderer") && !command.includes("--extension-process"));
}

function kill(matches: (command: string) => boolean): void {
  // The service that files share is another file's as well, whichever has started it.
  const others = listProcesses().filter(({ command }) => !command.endsWith("gateway/main.ts"));
  for (const { pid, command } of descendantsOf(process.pid, others)) {
    if (!matches(command)) continue;
    try {
      process.kill(pid, "SIGKILL");
    } catch {
      // The process has ended.
    }
  }
}
