/** Minimal recipe. */
export const smallRecipe = {
  name: "Small",
  steps: [{ do: { kind: "interact", action: { kind: "reload" } } }],
};
