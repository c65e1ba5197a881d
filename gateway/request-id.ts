const SANE = /^[A-Za-z0-9._~:-]{1,128}$/;

/** Takes the client's own request id where it is a sane token, else makes one. */
export function requestIdOf(received: string | undefined, make: () => string): string {
  return received !== undefined && SANE.test(received) ? received : make();
}
