/** A recipe that does as good as nothing. */
export const smallRecipe = {
  name: "Small",
  steps: [{ do: { kind: "interact", action: { kind: "reload" } } }],
};
