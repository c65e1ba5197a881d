export type Environment = Readonly<Record<string, string | undefined>>;

/** Thrown if a variable has an invalid value. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";
  readonly variable: string;

  constructor(variable: string, accepts: string, options?: ErrorOptions) {
    super(`${variable} ${accepts}`, options);
    this.variable = variable;
  }
}

/** Reads variables. Empty values count as absent. */
export interface EnvironmentReader {
  text(name: string): string | undefined;
  integer(name: string, range: { min: number; max: number; absent: number }): number;
  oneOf<T extends string>(name: string, values: readonly T[], absent: T): T;
  list(name: string, accepts: string, isItem: (item: string) => boolean): string[];
  url(name: string, protocols: readonly string[]): string | undefined;
  /** Reads file paths that are required together. Returns undefined if all are absent. */
  together<const Names extends readonly string[]>(...names: Names): Record<Names[number], string> | undefined;
}

function accepts(values: readonly string[]): string {
  return `accepts ${values.map((value) => `\`${value}\``).join(", ")}`;
}

/** Creates a reader. Its methods throw a ConfigError with the variable and the accepted values. */
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
        // Omits the value, because database URLs contain passwords.
        throw new ConfigError(
          name,
          `accepts an address that starts with ${protocols.map((p) => `\`${p}//\``).join(" or ")}`,
        );
      }
      return value.replace(/\/+$/, "");
    },
    together(...names) {
      const present = names.filter((name) => text(name) !== undefined);
      if (present.length === 0) return undefined;
      const missing = names.find((name) => !present.includes(name));
      if (missing !== undefined)
        throw new ConfigError(missing, `accepts the path of a file, and is required with ${present[0]}`);
      // All names are present here.
      return Object.fromEntries(names.map((name) => [name, text(name) ?? ""])) as Record<
        (typeof names)[number],
        string
      >;
    },
  };
}
