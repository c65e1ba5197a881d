/** Servers of Redis Sentinel. `urlOf` returns the URL of the primary at the address that a sentinel reports. */
export interface SentinelUrl {
  /** URLs of the sentinels, with their credentials. */
  readonly sentinels: readonly string[];
  /** Name of the primary in the configuration of the sentinels, which accepts letters, digits and `.-_`. */
  readonly name: string;
  urlOf(primary: { readonly host: string; readonly port: string }): string;
}

const form = /^(rediss?)\+sentinel:\/\/((?:[^@/?]*@)?)([^@/?]+)\/([\w.-]+)((?:\/\d+)?)(?:\?(.*))?$/;

const defaultPort = "26379";

/**
 * Parses `redis+sentinel://[user:password@]host:port,host:port/name[/database]`. The parameters `sentinel_username` and
 * `sentinel_password` are credentials for the sentinels. With `rediss+sentinel`, all servers use TLS. Returns undefined
 * for any other text.
 */
export function parseSentinelUrl(text: string): SentinelUrl | undefined {
  const [, scheme, user = "", hosts = "", name = "", database = "", query] = form.exec(text) ?? [];
  const addresses = hosts.split(",").map((host) => `${scheme}://${host}`);
  if (scheme === undefined || !addresses.every((address) => URL.canParse(address))) return undefined;
  const parameters = new URLSearchParams(query);
  return {
    sentinels: addresses.map((address) => {
      const sentinel = new URL(address);
      sentinel.port ||= defaultPort;
      sentinel.username = parameters.get("sentinel_username") ?? "";
      sentinel.password = parameters.get("sentinel_password") ?? "";
      return sentinel.href;
    }),
    name,
    urlOf: ({ host, port }) => `${scheme}://${user}${host.includes(":") ? `[${host}]` : host}:${port}${database}`,
  };
}
