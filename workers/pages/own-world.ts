/**
 * Name of the isolated world of our scripts, which the page cannot access. All scripts share one world, because each
 * world costs the renderer 1.6 ms.
 */
export const ownWorld = "pilothouse";
