import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";

/** A control group of this process, or an ancestor of that group. */
export interface Cgroup {
  readonly version: 1 | 2;
  /** Directory of the group's files. */
  readonly directory: string;
}

interface Mount {
  readonly type: string;
  /** The mounted group. In a container, often the container's own group. */
  readonly root: string;
  readonly point: string;
  readonly options: readonly string[];
}

/**
 * Returns the memory control groups of this process and their ancestors, the process's own group first. `root` is the
 * directory with the mount points of the kernel's files, normally `/`.
 */
export function findCgroups(root: string): Cgroup[] {
  const mounts = readMounts(join(root, "proc/self/mountinfo"));
  const groups = readText(join(root, "proc/self/cgroup"))
    .split("\n")
    .map((line) => /^\d+:([^:]*):(.*)$/.exec(line))
    .flatMap((match) => (match ? [{ controllers: (match[1] ?? "").split(","), path: match[2] ?? "/" }] : []));
  return groups.flatMap(({ controllers, path }) => {
    const isVersion2 = controllers.join() === "";
    if (!isVersion2 && !controllers.includes("memory")) return [];
    const mount = mounts.find(({ type, options }) =>
      isVersion2 ? type === "cgroup2" : type === "cgroup" && options.includes("memory"),
    );
    if (!mount) return [];
    const version = isVersion2 ? 2 : 1;
    return ancestry(mount, path).map((directory) => ({ version, directory: join(root, directory) }) as const);
  });
}

/** Returns the directories from a group up to the mount point. */
function ancestry({ root, point }: Mount, path: string): string[] {
  const below = root === "/" ? path : path.startsWith(root) ? path.slice(root.length) : "/";
  // The kernel shows groups outside the cgroup namespace as `/../x`. The mount point is used for such a group.
  const own = join(point, below.includes("..") ? "/" : below).replace(/\/$/, "");
  const directories = [own];
  for (let directory = own; directory !== point && directory.startsWith(`${point}/`); ) {
    directory = dirname(directory);
    directories.push(directory);
  }
  return directories;
}

/** Returns the control group mounts of a file as in proc_pid_mountinfo(5). A single hyphen ends the optional fields. */
function readMounts(path: string): Mount[] {
  return readText(path)
    .split("\n")
    .flatMap((line) => {
      const [before = "", after = ""] = line.split(" - ");
      const [, , , root, point] = before.split(" ");
      const [type, , options = ""] = after.split(" ");
      if (root === undefined || point === undefined || !type?.startsWith("cgroup")) return [];
      return [{ type, root, point, options: options.split(",") }];
    });
}

/** Returns the content of a kernel file, or "" if it cannot be read. */
export function readText(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}
