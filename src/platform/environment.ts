/** The variables of a process. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** A variable has a value that it does not accept. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";
  readonly variable: string;

  constructor(variable: string, accepts: string) {
    super(`${variable} ${accepts}`);
    this.variable = variable;
  }
}

/** Reads variables one by one; an empty one counts as absent, as it does for most programs. */
export interface EnvironmentReader {
  text(name: string): string | undefined;
  integer(name: string, range: { min: number; max: number; absent: number }): number;
  oneOf<T extends string>(name: string, values: readonly T[], absent: T): T;
  list(name: string, accepts: string, isItem: (item: string) => boolean): string[];
  url(name: string, protocols: readonly string[]): string | undefined;
  /** Paths of files that are of use only together: all of them, or undefined when there is none. */
  together<const Names extends readonly string[]>(...names: Names): Record<Names[number], string> | undefined;
}

function accepts(values: readonly string[]): string {
  return `accepts ${values.map((value) => `\`${value}\``).join(", ")}`;
}

/** Makes a reader of an environment. Every method throws a ConfigError that names the variable and what it accepts. */
export function readerOf(env: Environment): EnvironmentReader {
  const text = (name: string): string | undefined => env[name] || undefined;
  return {
    text,
    integer(name, { min, max, absent }) {
      const value = text(name);
      if (value === undefined) return absent;
      const number = Number(value);
      if (!/^\d+$/.test(value) || number < min || number > max) {
        throw new ConfigError(name, `accepts a whole number from ${min} to ${max}, not \`${value}\``);
      }
      return number;
    },
    oneOf(name, values, absent) {
      const value = text(name);
      if (value === undefined) return absent;
      const found = values.find((candidate) => candidate === value);
      if (found === undefined) throw new ConfigError(name, `${accepts(values)}, not \`${value}\``);
      return found;
    },
    list(name, description, isItem) {
      const items = (text(name) ?? "").split(",").map((item) => item.trim());
      const present = items.filter((item) => item !== "");
      const wrong = present.find((item) => !isItem(item));
      if (wrong !== undefined)
        throw new ConfigError(name, `accepts ${description}, separated by commas, not \`${wrong}\``);
      return present;
    },
    url(name, protocols) {
      const value = text(name);
      if (value === undefined) return undefined;
      const parsed = URL.canParse(value) ? new URL(value) : undefined;
      if (!parsed || !protocols.includes(parsed.protocol)) {
        // The value is not repeated: addresses of databases carry passwords.
        throw new ConfigError(
          name,
          `accepts an address that begins with ${protocols.map((p) => `\`${p}//\``).join(" or ")}`,
        );
      }
      return value.replace(/\/+$/, "");
    },
    together(...names) {
      const present = names.filter((name) => text(name) !== undefined);
      if (present.length === 0) return undefined;
      const missing = names.find((name) => !present.includes(name));
      if (missing !== undefined)
        throw new ConfigError(missing, `accepts the path of a file, and is needed beside ${present[0]}`);
      // The boundary where names that were read one by one become the record of all of them.
      return Object.fromEntries(names.map((name) => [name, text(name) ?? ""])) as Record<
        (typeof names)[number],
        string
      >;
    },
  };
}
