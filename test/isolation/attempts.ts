import type { Page } from "playwright";
import { type Way, ways } from "./way-out.ts";

/** Lets a page try one channel to one address. Resolves at the browser's outcome, or at the limit in milliseconds. */
export async function attempt(page: Page, way: Way, address: string, limit: number): Promise<void> {
  const { port } = ways[way];
  if (way === "navigation") {
    await page.goto(`http://${address}:${port}/`, { timeout: limit }).catch(() => undefined);
    return;
  }
  await page.evaluate(inPage[way], { address, port, limit });
}

interface Aim {
  address: string;
  port: number;
  limit: number;
}

/** Functions that run in the page. Each resolves at the browser's outcome, or at the limit. */
const inPage: Record<Exclude<Way, "navigation">, (aim: Aim) => Promise<unknown>> = {
  fetch: ({ address, port, limit }) =>
    fetch(`http://${address}:${port}/`, { mode: "no-cors", signal: AbortSignal.timeout(limit) }).then(
      () => "reached",
      (error) => String(error),
    ),
  websocket: ({ address, port, limit }) =>
    new Promise((resolve) => {
      const socket = new WebSocket(`ws://${address}:${port}/`);
      socket.onopen = socket.onerror = socket.onclose = resolve;
      setTimeout(resolve, limit);
    }),
  webtransport: ({ address, port, limit }) =>
    Promise.race([
      new WebTransport(`https://${address}:${port}/`).ready.catch(String),
      new Promise((resolve) => setTimeout(resolve, limit)),
    ]),
  stun: ({ address, port, limit }) =>
    new Promise((resolve) => {
      const peer = new RTCPeerConnection({ iceServers: [{ urls: `stun:${address}:${port}` }] });
      peer.createDataChannel("way out");
      peer.onicegatheringstatechange = () => peer.iceGatheringState === "complete" && resolve("complete");
      void peer.setLocalDescription();
      setTimeout(resolve, limit);
    }),
  turn: ({ address, port, limit }) =>
    new Promise((resolve) => {
      const urls = `turn:${address}:${port}?transport=tcp`;
      const peer = new RTCPeerConnection({ iceServers: [{ urls, username: "name", credential: "word" }] });
      peer.createDataChannel("way out");
      peer.onicegatheringstatechange = () => peer.iceGatheringState === "complete" && resolve("complete");
      void peer.setLocalDescription();
      setTimeout(resolve, limit);
    }),
};
