/** Width and height of an image in pixels. */
export interface ImageSize {
  readonly width: number;
  readonly height: number;
}

/**
 * Reads the size of a PNG, JPEG or WebP from the image's headers. Returns undefined if the headers are incomplete or
 * unknown.
 */
export function readImageSize(bytes: Buffer): ImageSize | undefined {
  if (bytes.length < 30) return undefined;
  if (bytes.readUInt32BE(0) === 0x89504e47) return { width: bytes.readUInt32BE(16), height: bytes.readUInt32BE(20) };
  if (bytes.toString("latin1", 0, 4) === "RIFF") return readWebp(bytes);
  return readJpeg(bytes);
}

function readWebp(bytes: Buffer): ImageSize | undefined {
  switch (bytes.toString("latin1", 12, 16)) {
    case "VP8 ":
      return { width: bytes.readUInt16LE(26) & 0x3fff, height: bytes.readUInt16LE(28) & 0x3fff };
    case "VP8L": {
      const bits = bytes.readUInt32LE(21);
      return { width: (bits & 0x3fff) + 1, height: ((bits >> 14) & 0x3fff) + 1 };
    }
    case "VP8X":
      return { width: bytes.readUIntLE(24, 3) + 1, height: bytes.readUIntLE(27, 3) + 1 };
    default:
      return undefined;
  }
}

/**
 * Skips JPEG segments up to the frame header (marker SOF0 to SOF15). The markers DHT, JPG and DAC are in the
 * same range, but start other segments.
 */
function readJpeg(bytes: Buffer): ImageSize | undefined {
  let at = 2;
  while (at + 9 < bytes.length && bytes[at] === 0xff) {
    const marker = bytes[at + 1] ?? 0;
    const isFrame = marker >= 0xc0 && marker <= 0xcf && marker !== 0xc4 && marker !== 0xc8 && marker !== 0xcc;
    if (isFrame) return { width: bytes.readUInt16BE(at + 7), height: bytes.readUInt16BE(at + 5) };
    at += 2 + bytes.readUInt16BE(at + 2);
  }
  return undefined;
}
