/**
 * Name of the isolated world of our scripts, which the page cannot access. All scripts share one world per document,
 * because creating a world takes the renderer 1.6 ms.
 */
export const ownWorld = "pilothouse";
