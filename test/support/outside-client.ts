import { spawn } from "node:child_process";
import { once } from "node:events";
import { onTestFinished } from "vitest";

/** What a client's program is told, as JSON in its first argument. */
export interface Orders {
  /** Address of the session for CDP clients. */
  readonly url: string;
  /** The page that it is to work on, which the session shows already. */
  readonly page: string;
  /** A file for the page: of the client's own machine, where it sends the bytes itself, else of the session. */
  readonly file: string;
}

/** What the program prints, as one line of JSON, when it has done all of it; null is what the client cannot do. */
export interface Deeds {
  /** The title of the page when its form was filled and sent. */
  readonly form: string;
  /** The title of the page that a button opened. */
  readonly popup: string;
  /** The name of the download that the client was told of. */
  readonly download: string | null;
  /** The title of the page when it has read the file: its name and SHA-1. */
  readonly upload: string;
  /** What the page asked, and its title after the client said yes. */
  readonly dialog: readonly [asked: string, title: string];
  /** How the screenshot begins. */
  readonly screenshot: string;
}

/** A client in a process of its own. */
export interface OutsideClient {
  /** What it has done. */
  readonly deeds: Deeds;
  /** Ends it, and whatever it has started, without a chance to say goodbye. */
  vanish(): Promise<void>;
}

/** Runs a client's program until it has done its work; it then stays, connected, until it vanishes. */
export async function runOutside(command: readonly string[], orders: Orders): Promise<OutsideClient> {
  const [program = "", ...args] = [...command, JSON.stringify(orders)];
  const child = spawn(program, args, {
    // A group of its own, for what it starts goes with it; as in CI it sends no statistics to its makers.
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
