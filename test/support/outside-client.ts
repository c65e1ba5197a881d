import { spawn } from "node:child_process";
import { once } from "node:events";
import { onTestFinished } from "vitest";

/** Input of a client's program, as JSON in its first argument. */
export interface Orders {
  /** Address of the session for CDP clients. */
  readonly url: string;
  /** Page to work on, which the session already shows. */
  readonly page: string;
  /** File for the page: local if the client sends the bytes, otherwise of the session. */
  readonly file: string;
}

/** Output of the program as one line of JSON at its end; null for what the client does not support. */
export interface Deeds {
  /** Title of the page after its form was submitted. */
  readonly form: string;
  /** Title of the page that a button opened. */
  readonly popup: string;
  /** Name of the reported download. */
  readonly download: string | null;
  /** Title of the page after it has read the file: name and SHA-1. */
  readonly upload: string;
  /** Question of the page, and its title after the client accepted the dialog. */
  readonly dialog: readonly [asked: string, title: string];
  /** First bytes of the screenshot. */
  readonly screenshot: string;
}

/** Client in a separate process. */
export interface OutsideClient {
  readonly deeds: Deeds;
  /** Kills the client and its descendants without a clean disconnect. */
  vanish(): Promise<void>;
}

/** Runs a client's program until its work is done. The program then stays connected until `vanish`. */
export async function runOutside(command: readonly string[], orders: Orders): Promise<OutsideClient> {
  const [program = "", ...args] = [...command, JSON.stringify(orders)];
  const child = spawn(program, args, {
    // Own process group, so that descendants are killed too. CI=1 turns off telemetry.
    detached: true,
    env: { ...process.env, CI: "1", CHROME_DEVTOOLS_MCP_NO_UPDATE_CHECKS: "1" },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const exited = once(child, "exit");
  const kill = () => child.exitCode === null && child.signalCode === null && process.kill(-(child.pid ?? 0), "SIGKILL");
  onTestFinished(() => void kill());
  let said = "";
  const complaints: string[] = [];
  child.stderr.setEncoding("utf8").on("data", (text: string) => void complaints.push(text));
  const line = new Promise<string>((resolve) => {
    child.stdout.on("data", (text) => {
      said += String(text);
      if (said.includes("\n")) resolve(said);
    });
  });
  const printed = await Promise.race([
    line,
    exited.then(([code]) => Promise.reject(new Error(`${args[0]} ended with ${code}: ${complaints.join("")}`))),
  ]);
  return {
    deeds: JSON.parse(printed),
    async vanish() {
      kill();
      await exited;
    },
  };
}
