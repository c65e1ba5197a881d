import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { cp } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { go } from "../../support/livekit-build.ts";

const run = promisify(execFile);
const version = "1.36.3";
const kedaModule = "github.com/kedacore/keda/v2@v2.21.0";
const modules = new URL("programs/", import.meta.url).pathname;

/** Directory of the built programs. */
export const programs: string = new URL(`../../../.cache/kubernetes-${version}/`, import.meta.url).pathname;

/** Directory of KEDA: its programs, and `crds`. */
export const keda: string = new URL(`../../../.cache/keda-${kedaModule.split("@")[1]}/`, import.meta.url).pathname;

/** Milliseconds for the largest program while a whole suite runs on two cores. */
const buildMs = 1_500_000;

const [major, minor] = version.split(".");
const release = ["k8s.io/component-base/version", "k8s.io/client-go/pkg/version"].flatMap((variables) =>
  Object.entries({ gitVersion: `v${version}`, gitMajor: major, gitMinor: minor, gitTreeState: "clean" }).map(
    ([name, value]) => `-X ${variables}.${name}=${value}`,
  ),
);

/** Package of each program, by its module. */
const packages: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  kubernetes: Object.fromEntries(
    ["kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy", "kubectl"].map((name) => [
      name,
      `k8s.io/kubernetes/cmd/${name}`,
    ]),
  ),
  etcd: { etcd: "go.etcd.io/etcd/server/v3" },
  coredns: { coredns: "." },
};

/** Builds what a cluster consists of, except containerd. The first call takes 15 minutes. */
export async function buildPrograms(): Promise<void> {
  for (const [module, all] of Object.entries(packages))
    for (const [name, path] of Object.entries(all)) await build(join(modules, module), path, join(programs, name));
  // KEDA builds only in its own module, because of the replacements there. The module also has the CRDs.
  const { stdout } = await runGo(["mod", "download", "-json", kedaModule], "/");
  const { Dir } = JSON.parse(stdout);
  await build(Dir, "./cmd/operator", join(keda, "keda-operator"));
  await build(Dir, "./cmd/adapter", join(keda, "keda-metrics-apiserver"));
  await cp(join(Dir, "config/crd/bases"), join(keda, "crds"), { recursive: true });
}

/** Builds a package of a module, unless the program exists. */
async function build(cwd: string, path: string, program: string): Promise<void> {
  if (existsSync(program)) return;
  await runGo(["build", "-ldflags", ["-s", "-w", ...release].join(" "), "-o", program, path], cwd);
}

function runGo(words: readonly string[], cwd: string) {
  if (go === undefined) throw new Error("there is no Go to build Kubernetes with");
  const env = { ...process.env, CGO_ENABLED: "0", GOFLAGS: "-buildvcs=false -trimpath" };
  return run("nice", ["-n", "19", go, ...words], { cwd, timeout: buildMs, env });
}
