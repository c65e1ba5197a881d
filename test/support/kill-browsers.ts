import { descendantsOf } from "./process-list.ts";

/** Kills every browser that this process has started, as if it had crashed. */
export function killBrowsers(): void {
  kill((command) => command.includes("--remote-debugging-pipe") && !command.includes("--type="));
}

/** Kills the renderers of every browser that this process has started: their pages crash. */
export function killRenderers(): void {
  kill((command) => command.includes("--type=renderer") && !command.includes("--extension-process"));
}

function kill(matches: (command: string) => boolean): void {
  for (const { pid, command } of descendantsOf(process.pid)) {
    if (!matches(command)) continue;
    try {
      process.kill(pid, "SIGKILL");
    } catch {
      // It has ended meanwhile.
    }
  }
}
