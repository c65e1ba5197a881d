import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { go } from "../../support/livekit-build.ts";
import { buildHelm, helmProgram } from "../helm.ts";
import { buildPrograms, keda, programs } from "./programs.ts";

const script = resolve(import.meta.dirname, "node.sh");
const needed = ["containerd", "podman", "runc", "nft", "conntrack", "openssl", "nsenter"];

/** Returns what is missing for a cluster on this machine, as a sentence. */
export function missingForCluster(): string | undefined {
  const missing = needed.filter((program) => spawnSync("which", [program]).status !== 0);
  if (go === undefined) missing.unshift("Go 1.26");
  if (process.getuid?.() !== 0) missing.unshift("root");
  if (missing.length === 0) return undefined;
  const packages = "containerd containernetworking-plugins runc podman nftables conntrack openssl";
  return `${missing.join(", ")} is missing, so the chart is not tested on a cluster: as root, apt-get install ${packages}`;
}

/** A Kubernetes of one node with KEDA, in namespaces of its own. */
export class Cluster implements AsyncDisposable {
  readonly #directory: string;
  readonly #env: NodeJS.ProcessEnv;
  #holder = "";

  constructor(directory: string, pause: string, images: readonly string[]) {
    this.#directory = directory;
    this.#env = {
      ...process.env,
      PATH: `${programs}:${keda}:${process.env.PATH}`,
      KEDA_CRDS: join(keda, "crds"),
      KUBECONFIG: join(directory, "pki/admin.conf"),
      PAUSE_IMAGE: pause,
      IMAGES: images.join(" "),
    };
  }

  async start(): Promise<void> {
    await buildPrograms();
    await buildHelm();
    await this.#script("up");
    this.#holder = (await readFile(join(this.#directory, "pid/holder"), "utf8")).trim();
  }

  /** Starts a program in the network of the cluster. */
  spawn(...words: readonly string[]): ChildProcess {
    return spawn("nsenter", [`--net=/proc/${this.#holder}/ns/net`, ...words], { env: this.#env });
  }

  /** Runs a program in the network of the cluster. Returns its output. */
  async run(words: readonly string[], input = ""): Promise<string> {
    const child = this.spawn(...words);
    let output = "";
    let errors = "";
    child.stdout?.on("data", (chunk) => {
      output += chunk;
    });
    child.stderr?.on("data", (chunk) => {
      errors += chunk;
    });
    child.stdin?.end(input);
    const [code] = await once(child, "close");
    if (code !== 0) throw new Error(`${words.join(" ")} exited with ${code}:\n${errors.slice(-4_000)}`);
    return output.trim();
  }

  kubectl(...words: readonly string[]): Promise<string> {
    return this.run(["kubectl", ...words]);
  }

  /** Creates or changes objects. */
  async apply(...objects: readonly object[]): Promise<void> {
    const list = { apiVersion: "v1", kind: "List", items: objects };
    await this.run(["kubectl", "apply", "--filename", "-"], JSON.stringify(list));
  }

  helm(words: readonly string[], values: object = {}): Promise<string> {
    return this.run([helmProgram, ...words, "--values", "-"], JSON.stringify(values));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#script("down");
  }

  async #script(command: "up" | "down"): Promise<void> {
    // Programs that stay would keep pipes open.
    const child = spawn("bash", [script, command, this.#directory], {
      env: this.#env,
      stdio: ["ignore", "ignore", "inherit"],
    });
    const [code] = await once(child, "exit");
    if (code !== 0) throw new Error(`node.sh ${command} exited with ${code}`);
  }
}
