import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { parseAllDocuments } from "yaml";
import { go } from "../support/livekit-build.ts";

const run = promisify(execFile);
const version = "v3.22.0";
const cache = new URL(`../../.cache/helm-${version}/`, import.meta.url).pathname;
/** Path of the program that `buildHelm` builds. */
export const helmProgram: string = join(cache, "helm");
const chart = new URL("../../deploy/helm", import.meta.url).pathname;

/** Milliseconds for the build while a whole suite runs on two cores. */
const buildMs = 1_500_000;

/** An object of a rendered chart. */
export interface KubernetesObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string;
    readonly labels: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
  };
  // biome-ignore lint/suspicious/noExplicitAny: tests look into objects of every kind.
  readonly [field: string]: any;
}

export interface RenderOptions {
  readonly values?: object;
  readonly kubernetes?: string;
  /** Kinds of extensions that the cluster has, as `group/version/Kind`. */
  readonly has?: readonly string[];
  readonly isUpgrade?: boolean;
}

/** Builds Helm, once. */
export async function buildHelm(): Promise<void> {
  if (existsSync(helmProgram)) return;
  if (go === undefined) throw new Error("there is no Go to build Helm with");
  const options = { cwd: "/", timeout: buildMs, env: { ...process.env, GOBIN: cache, CGO_ENABLED: "0" } };
  await run("nice", ["-n", "19", go, "install", `helm.sh/helm/v3/cmd/helm@${version}`], options);
}

async function helm(words: readonly string[], values: object = {}): Promise<string> {
  const running = run(helmProgram, [...words, "--values", "-"], { maxBuffer: 16 * 1024 * 1024 });
  running.child.stdin?.end(JSON.stringify(values));
  return (await running).stdout;
}

/** Checks the chart with values, strictly. Returns the report. */
export const lintChart = (values: object): Promise<string> => helm(["lint", chart, "--strict"], values);

/** Renders the chart as the release `trial` in the namespace `browsers`. */
export async function renderChart(options: RenderOptions = {}): Promise<KubernetesObject[]> {
  const { values = {}, kubernetes = "1.36.3", has = [], isUpgrade = false } = options;
  const words = ["template", "trial", chart, "--namespace", "browsers", "--kube-version", kubernetes];
  for (const each of has) words.push("--api-versions", each);
  if (isUpgrade) words.push("--is-upgrade");
  const text = await helm(words, values);
  return parseAllDocuments(text).flatMap((document) => {
    if (document.errors[0]) throw document.errors[0];
    return document.toJS() ?? [];
  });
}
