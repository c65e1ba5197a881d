/** Pool of workers that register without a pool. */
export const defaultPool = "default";

/** Returns whether a text is a valid pool name: a lower-case DNS label. */
export const isPoolName = (text: string): boolean => /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/.test(text);
