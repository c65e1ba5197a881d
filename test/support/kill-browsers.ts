import { descendantsOf, listProcesses } from "./process-list.ts";

/** Kills all browsers started by this process, as if they had crashed. */
export function killBrowsers(): void {
  kill((command) => command.includes("--remote-debugging-pipe") && !command.includes("--type="));
}

/** Kills the renderers of all browsers started by this process, which crashes their pages. */
export function killRenderers(): void {
  kill((command) => command.includes("--type=renderer") && !command.includes("--extension-process"));
}

function kill(matches: (command: string) => boolean): void {
  // Excludes the service that several test files share, regardless of which file started it.
  const others = listProcesses().filter(({ command }) => !command.endsWith("gateway/main.ts"));
  for (const { pid, command } of descendantsOf(process.pid, others)) {
    if (!matches(command)) continue;
    try {
      process.kill(pid, "SIGKILL");
    } catch {
      // The process has exited.
    }
  }
}
