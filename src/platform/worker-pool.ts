/** Pool of workers that name none. */
export const defaultPool = "default";

/** Returns whether a text names a pool: a label of a host name. */
export const isPoolName = (text: string): boolean => /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/.test(text);
