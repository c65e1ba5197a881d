/**
 * Joins metrics of several processes in the Prometheus text format 0.0.4, in which one HELP and one TYPE line precede
 * all samples of a metric. The samples of different processes must differ by a label.
 */
export function joinMetrics(texts: readonly string[]): string {
  const families = new Map<string, { readonly head: string[]; readonly samples: string[] }>();
  for (const text of texts) {
    let family: { readonly head: string[]; readonly samples: string[] } | undefined;
    let isNew = false;
    for (const line of text.split("\n")) {
      if (line === "") continue;
      const name = /^# HELP (\S+)/.exec(line)?.[1];
      if (name !== undefined) {
        isNew = !families.has(name);
        family = families.get(name) ?? { head: [], samples: [] };
        families.set(name, family);
      }
      if (!line.startsWith("#")) family?.samples.push(line);
      else if (isNew) family?.head.push(line);
    }
  }
  return [...families.values()].map(({ head, samples }) => `${[...head, ...samples].join("\n")}\n`).join("\n");
}
