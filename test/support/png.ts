import { inflateSync } from "node:zlib";

/** Picture as rows of red, green and blue. */
export interface Pixels {
  readonly width: number;
  readonly height: number;
  readonly rgb: Buffer;
}

const signatureBytes = 8;
const trueColour = 2;
const trueColourAlpha = 6;

/** Reads a PNG with 8 bits per channel and discards transparency. */
export function readPng(file: Buffer): Pixels {
  const parts: Buffer[] = [];
  let header: Buffer = Buffer.alloc(0);
  for (let at = signatureBytes; at < file.length; ) {
    const length = file.readUInt32BE(at);
    const type = file.toString("latin1", at + 4, at + 8);
    const data = file.subarray(at + 8, at + 8 + length);
    if (type === "IHDR") header = data;
    if (type === "IDAT") parts.push(data);
    at += length + 12;
  }
  const [width, height, colours] = [header.readUInt32BE(0), header.readUInt32BE(4), header[9]];
  if (colours !== trueColour && colours !== trueColourAlpha) throw new Error("expected a true-colour PNG");
  const channels = colours === trueColour ? 3 : 4;
  const rows = unfilter(inflateSync(Buffer.concat(parts)), width * channels, channels);
  const rgb = Buffer.alloc(width * height * 3);
  // A call for each pixel takes twice as long.
  for (let pixel = 0, at = 0; at < rgb.length; pixel += channels, at += 3) {
    rgb[at] = rows[pixel] ?? 0;
    rgb[at + 1] = rows[pixel + 1] ?? 0;
    rgb[at + 2] = rows[pixel + 2] ?? 0;
  }
  return { width, height, rgb };
}

/** Reverses the filter of each row, given by the row's first byte. */
function unfilter(filtered: Buffer, rowBytes: number, channels: number): Buffer {
  const height = filtered.length / (rowBytes + 1);
  const rows = Buffer.alloc(height * rowBytes);
  for (let y = 0; y < height; y += 1) {
    const filter = filtered[y * (rowBytes + 1)] ?? 0;
    for (let x = 0; x < rowBytes; x += 1) {
      const at = y * rowBytes + x;
      const left = x < channels ? 0 : (rows[at - channels] ?? 0);
      const above = y === 0 ? 0 : (rows[at - rowBytes] ?? 0);
      const corner = x < channels || y === 0 ? 0 : (rows[at - rowBytes - channels] ?? 0);
      rows[at] = (filtered[y * (rowBytes + 1) + 1 + x] ?? 0) + guess(filter, left, above, corner);
    }
  }
  return rows;
}

/** Returns a filter's prediction of a byte from its neighbours. */
function guess(filter: number, left: number, above: number, corner: number): number {
  switch (filter) {
    case 1:
      return left;
    case 2:
      return above;
    case 3:
      return (left + above) >> 1;
    case 4:
      return nearest(left + above - corner, left, above, corner);
    default:
      return 0;
  }
}

function nearest(aim: number, left: number, above: number, corner: number): number {
  const [toLeft, toAbove, toCorner] = [Math.abs(aim - left), Math.abs(aim - above), Math.abs(aim - corner)];
  if (toLeft <= toAbove && toLeft <= toCorner) return left;
  return toAbove <= toCorner ? above : corner;
}
