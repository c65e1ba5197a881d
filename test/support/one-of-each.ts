/** Returns the first item of each kind in order. */
export function oneOfEach<Item>(items: readonly Item[], kindOf: (item: Item) => string): Item[] {
  return [...Map.groupBy(items, kindOf).values()].flatMap(([first]) => (first === undefined ? [] : [first]));
}
