import { execFile, spawnSync } from "node:child_process";
import { promisify } from "node:util";

const run = promisify(execFile);

/** Whether podman is installed. Prints what is not tested without it; throws in CI. */
export function hasPodman(untested: string): boolean {
  if (spawnSync("podman", ["--version"]).status === 0) return true;
  const reason = `podman is missing, so ${untested} not tested: install it (apt-get install podman runc)`;
  if (process.env.CI) throw new Error(reason);
  console.warn(reason);
  return false;
}

const settings = ["--runtime", "runc", "--cgroup-manager", "cgroupfs"];

/** Limits of containers. Higher limits fail on a machine that is itself a container. */
export const limits = ["--ulimit", "nofile=4096:4096", "--ulimit", "nproc=4096:4096", "--shm-size", "2g"];

/** Runs podman and returns its output. */
export async function podman(...words: string[]): Promise<string> {
  const { stdout } = await run("podman", [...settings, ...words], { maxBuffer: 64 * 1024 * 1024 });
  return stdout.trim();
}

/** Base that tools/image-base.sh makes, because tests reach no container registry. */
const base = "localhost/pilothouse-base:bookworm";

/** Certificates of the machine, for package registries behind its own certificate authority. */
const certificates = "/etc/ssl/certs/ca-certificates.crt";

/** Builds a target of a Dockerfile upon the base of the tests. Returns its tag. */
export function buildImage(file: string, context: string, target: string, ...args: string[]): Promise<string> {
  return buildImageAs(`localhost/pilothouse-test:${target}`, file, context, target, ...args);
}

/** Builds a target of a Dockerfile with a tag. Returns the tag. */
export async function buildImageAs(
  tag: string,
  file: string,
  context: string,
  target: string,
  ...args: string[]
): Promise<string> {
  await run("sh", ["tools/image-base.sh"]);
  const options = ["--network", "host", "--volume", `${certificates}:${certificates}:ro`];
  const values = [`BASE=${base}`, ...args].flatMap((value) => ["--build-arg", value]);
  await podman("build", ...limits, ...options, ...values, "--file", file, "--target", target, "--tag", tag, context);
  return tag;
}
