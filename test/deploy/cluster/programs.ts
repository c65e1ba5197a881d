import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { go } from "../../support/livekit-build.ts";

const run = promisify(execFile);
const version = "1.36.3";
const modules = new URL("programs/", import.meta.url).pathname;

/** Directory of the built programs. */
export const programs: string = new URL(`../../../.cache/kubernetes-${version}/`, import.meta.url).pathname;

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

/** Builds what a cluster consists of, except containerd. The first call takes ten minutes. */
export async function buildPrograms(): Promise<void> {
  if (go === undefined) throw new Error("there is no Go to build Kubernetes with");
  const env = { ...process.env, CGO_ENABLED: "0", GOFLAGS: "-buildvcs=false -trimpath" };
  for (const [module, all] of Object.entries(packages)) {
    const options = { cwd: join(modules, module), timeout: buildMs, env };
    for (const [name, path] of Object.entries(all)) {
      const program = join(programs, name);
      if (existsSync(program)) continue;
      const words = ["build", "-ldflags", ["-s", "-w", ...release].join(" "), "-o", program, path];
      await run("nice", ["-n", "19", go, ...words], options);
    }
  }
}
