import { builtServices } from "../../../tools/described-services.ts";

/** Too short to be told from anything else: six digits of a code. */
const shortest = 10;

/** Names of the fields that the contract marks as secret. */
const secretFields: ReadonlySet<string> = new Set(
  builtServices.flatMap((service) =>
    service.methods.flatMap(({ method }) =>
      method.parent.file.messages.flatMap(({ fields }) =>
        fields.filter(({ proto }) => proto.options?.debugRedact).map(({ name }) => name),
      ),
    ),
  ),
);

/** Secrets that nobody may come across. */
export class Secrets {
  readonly #values = new Map<string, string>();
  readonly #isPublic: (value: string) => boolean;

  /** `isPublic` says of values that are no secrets whatever their fields are called, such as addresses of pages. */
  constructor(isPublic: (value: string) => boolean = () => false) {
    this.#isPublic = isPublic;
  }

  get count(): number {
    return this.#values.size;
  }

  add(what: string, value: string): void {
    if (value.length >= shortest && !this.#isPublic(value)) this.#values.set(value, what);
  }

  /** Adds whatever the contract marks as secret in a request or an answer. */
  harvest(json: unknown): void {
    if (typeof json !== "object" || json === null) return;
    for (const [name, value] of Object.entries(json)) {
      const values = Array.isArray(value) ? value : [value];
      if (secretFields.has(name))
        for (const each of values) if (typeof each === "string") this.add(`a field ${name}`, each);
      for (const each of values) this.harvest(each);
    }
  }

  /** Says which of them are in some texts, as they are or in the hex of their bytes. */
  foundIn(places: Readonly<Record<string, string>>): string[] {
    return Object.entries(places).flatMap(([place, text]) =>
      [...this.#values]
        .filter(([value]) => text.includes(value) || text.includes(Buffer.from(value).toString("hex")))
        .map(([, what]) => `${what} in ${place}`),
    );
  }
}
