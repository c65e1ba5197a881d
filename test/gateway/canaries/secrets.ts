import { builtServices } from "../../../tools/described-services.ts";

/** Shorter values, such as a code of six digits, would match unrelated text. */
const shortest = 10;

/** Fields that the contract marks as secret. */
const secretFields: ReadonlySet<string> = new Set(
  builtServices.flatMap((service) =>
    service.methods.flatMap(({ method }) =>
      method.parent.file.messages.flatMap(({ fields }) =>
        fields.filter(({ proto }) => proto.options?.debugRedact).map(({ name }) => name),
      ),
    ),
  ),
);

/** Registered secrets, which must not appear in any output. */
export class Secrets {
  readonly #values = new Map<string, string>();
  readonly #isPublic: (value: string) => boolean;

  /** `isPublic` exempts values that are public despite a secret field name, such as page URLs. */
  constructor(isPublic: (value: string) => boolean = () => false) {
    this.#isPublic = isPublic;
  }

  get count(): number {
    return this.#values.size;
  }

  add(what: string, value: string): void {
    if (value.length >= shortest && !this.#isPublic(value)) this.#values.set(value, what);
  }

  /** Adds all values of secret fields in a request or response. */
  harvest(json: unknown): void {
    if (typeof json !== "object" || json === null) return;
    for (const [name, value] of Object.entries(json)) {
      const values = Array.isArray(value) ? value : [value];
      if (secretFields.has(name))
        for (const each of values) if (typeof each === "string") this.add(`a field ${name}`, each);
      for (const each of values) this.harvest(each);
    }
  }

  /** Returns the secrets found in the texts, either verbatim or in hex. */
  foundIn(places: Readonly<Record<string, string>>): string[] {
    return Object.entries(places).flatMap(([place, text]) =>
      [...this.#values]
        .filter(([value]) => text.includes(value) || text.includes(Buffer.from(value).toString("hex")))
        .map(([, what]) => `${what} in ${place}`),
    );
  }
}
