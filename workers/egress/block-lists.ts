import { open } from "node:fs/promises";
import { isIP } from "node:net";
import { ConfigError } from "../../src/platform/environment.ts";
import { normaliseHost } from "../../src/platform/outgoing/address-rules.ts";
import { DomainList } from "../../src/platform/outgoing/domain-list.ts";
import type { BlockListFile, ListKind } from "../base/config.ts";

/** Hosts to block, each with all its subdomains, except the exceptions and their subdomains. */
interface BlockList {
  readonly hosts: Set<string>;
  readonly exceptions: Set<string>;
}

export type BlockLists = ReadonlyMap<ListKind, BlockList>;

const expectedLines = "expected lines such as example.com that no earlier list of this kind contains";

/** Maximum bytes of a list, and hosts of all lists. 2 million hosts use about 200 MB. */
const largest = { bytes: 64 * 2 ** 20, hosts: 2_000_000 };

/** Hosts blocked for one session. */
export class HostBlock {
  readonly #hosts: DomainList;
  readonly #lists: readonly (readonly [ListKind, BlockList])[];

  constructor(hosts: readonly string[], kinds: readonly ListKind[], lists: BlockLists) {
    this.#hosts = new DomainList(hosts);
    this.#lists = kinds.map((kind) => [kind, lists.get(kind) ?? emptyList()] as const);
  }

  /** Returns the list that blocks a normalized host, `hosts` for the session's own hosts, or undefined if none does. */
  reasonFor(host: string): ListKind | "hosts" | undefined {
    if (this.#hosts.has(host)) return "hosts";
    return this.#lists.find(([, { hosts, exceptions }]) => isListed(hosts, host) && !isListed(exceptions, host))?.[0];
  }
}

const emptyList = (): BlockList => ({ hosts: new Set(), exceptions: new Set() });

function isListed(listed: ReadonlySet<string>, host: string): boolean {
  if (listed.has(host)) return true;
  for (let dot = host.indexOf("."); dot >= 0; dot = host.indexOf(".", dot + 1)) {
    if (listed.has(host.slice(dot + 1))) return true;
  }
  return false;
}

/** Reads the operator's lists. Throws a ConfigError for a list that cannot be read, adds no host or exceeds a limit. */
export async function readBlockLists(files: readonly BlockListFile[]): Promise<BlockLists> {
  const lists = new Map<ListKind, BlockList>();
  let left = largest.hosts;
  for (const { kind, path } of files) {
    const list = lists.get(kind) ?? emptyList();
    lists.set(kind, list);
    const before = sizeOf(list);
    await addHosts(list, path);
    const added = sizeOf(list) - before;
    left -= added;
    if (added === 0)
      throw new ConfigError("BLOCK_LISTS", `names the list ${path}, which adds no host: ${expectedLines}`);
    if (left < 0) throw new ConfigError("BLOCK_LISTS", `accepts at most ${largest.hosts} hosts`);
  }
  return lists;
}

const sizeOf = ({ hosts, exceptions }: BlockList): number => hosts.size + exceptions.size;

/** Adds the hosts and exceptions of a file to a list. */
async function addHosts({ hosts, exceptions }: BlockList, path: string): Promise<void> {
  await using file = await open(path).catch((error: NodeJS.ErrnoException) => {
    throw new ConfigError("BLOCK_LISTS", `names a list that cannot be read: ${path} (${error.code ?? "error"})`);
  });
  const { size } = await file.stat();
  if (size > largest.bytes) throw new ConfigError("BLOCK_LISTS", `accepts lists of at most 64 MiB, not ${path}`);
  for await (const line of file.readLines()) {
    for (const { host, isException } of readLine(line)) (isException ? exceptions : hosts).add(host);
  }
}

/**
 * `||example.com^` of filter lists, optionally with one of these options, which are ignored. `@@` marks an exception.
 */
const filterRule = /^(?<exception>@@)?\|\|(?<host>[^/^*$|]+)\^(?:\$(?:third-party|3p|important|all|doc|document))?$/;

/**
 * Returns the hosts of a line: `example.com`, `0.0.0.0 example.com` of hosts files, or `||example.com^` of filter
 * lists. Other filters are ignored, because the egress relay sees only host names.
 */
export function readLine(line: string): { readonly host: string; readonly isException: boolean }[] {
  const text = line.trim();
  if (text === "" || /^[!#[]/.test(text)) return [];
  const rule = filterRule.exec(text)?.groups;
  const words = rule ? [rule.host ?? ""] : text.replace(/\s+#.*$/, "").split(/\s+/);
  const [first = ""] = words;
  const named = !rule && isIP(first) !== 0 ? words.slice(1) : words.slice(0, 1);
  return named.flatMap((name) => {
    const host = hostOf(name);
    return host === undefined ? [] : [{ host, isException: rule?.exception !== undefined }];
  });
}

/** Returns a normalized host name that contains a dot. Undefined for IP addresses, local names and invalid names. */
function hostOf(name: string): string | undefined {
  const host = /^[a-z0-9_-]+(\.[a-z0-9_-]+)+$/.test(name) ? name : normaliseHost(name);
  const isName = host?.includes(".") && isIP(host) === 0 && !/[*%]/.test(host);
  return isName && host !== "localhost.localdomain" ? host : undefined;
}
