import type { CdpSession } from "../cdp/cdp-session.ts";

/** Cookie in the form that `Storage.setCookies` accepts. */
export type Cookie = Awaited<ReturnType<typeof readCookies>>[number];

/** Sets cookies. If the browser rejects the set, sets them one by one and skips rejected cookies. */
export async function setCookies(session: CdpSession, cookies: readonly Cookie[]): Promise<void> {
  try {
    await session.send("Storage.setCookies", { cookies: [...cookies] });
  } catch {
    for (const cookie of cookies) {
      await session.send("Storage.setCookies", { cookies: [cookie] }).catch(() => undefined);
    }
  }
}

/** Resolves with all cookies in the form for `setCookies`. Session cookies have no expiry. */
export async function readCookies(session: CdpSession) {
  const { cookies } = await session.send("Storage.getCookies");
  return cookies.map(({ size: _size, session: isSession, expires, ...cookie }) => ({
    ...cookie,
    ...(!isSession && { expires }),
  }));
}
