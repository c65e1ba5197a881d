import { createServer } from "node:net";

/** Finds loopback ports that nothing listens on, all different. */
export async function freePorts<const Names extends readonly string[]>(
  ...names: Names
): Promise<Record<Names[number], number>> {
  const servers = await Promise.all(
    names.map(
      () =>
        new Promise<ReturnType<typeof createServer>>((resolve, reject) => {
          const server = createServer().once("error", reject);
          server.listen(0, "127.0.0.1", () => resolve(server));
        }),
    ),
  );
  const ports = servers.map((server) => {
    const address = server.address();
    return typeof address === "object" && address ? address.port : 0;
  });
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  return Object.fromEntries(names.map((name, index) => [name, ports[index]])) as Record<Names[number], number>;
}
