/** Numbers and bytes in a protobuf message, by field number. */
type Fields = Record<number, number | Uint8Array>;

/** A point of the session's page, in CSS pixels. */
export interface PicturePoint {
  readonly x: number;
  readonly y: number;
}

/** Field numbers of `JoinResponse` and `LiveFrame`. */
const frameField = 4;
const field = { sequence: 1, contentType: 3, width: 4, height: 5, data: 7 };

function readFields(bytes: Uint8Array): Fields {
  const fields: Fields = {};
  let at = 0;
  const readNumber = () => {
    for (let value = 0, unit = 1; ; unit *= 128) {
      const byte = bytes[at++] ?? 0;
      value += (byte & 127) * unit;
      if (byte < 128) return value;
    }
  };
  while (at < bytes.length) {
    const tag = readNumber();
    const value = readNumber();
    const hasBytes = tag % 8 === 2;
    fields[Math.floor(tag / 8)] = hasBytes ? bytes.subarray(at, at + value) : value;
    if (hasBytes) at += value;
  }
  return fields;
}

interface Waiting {
  readonly frame: Fields;
  readonly onShown: (sequence: number) => void;
}

/** The picture of the session's page. */
export interface Picture {
  /** Draws a frame and calls `onShown`, unless a newer frame arrives first. */
  show(message: Uint8Array, onShown: (sequence: number) => void): void;
  /** Draws the current image of a video in place of frames. */
  paint(video: HTMLVideoElement): void;
  /**
   * Converts a point of the viewer's window to a point of the session's page. Points outside the picture map to its
   * edge.
   */
  pointAt(at: { readonly clientX: number; readonly clientY: number }): PicturePoint;
  /** Number of frames and video images drawn so far. */
  readonly shown: number;
}

const numberOf = (value: number | Uint8Array | undefined): number => (typeof value === "number" ? value : 0);

export function createPicture(canvas: HTMLCanvasElement): Picture {
  const context = canvas.getContext("2d", { alpha: false });
  let waiting: Waiting | undefined;
  let isDrawing = false;
  let shown = 0;
  /** Size of the session's page in CSS pixels. */
  let page = { width: canvas.width, height: canvas.height };

  async function draw({ frame }: Waiting): Promise<void> {
    const { [field.data]: data, [field.contentType]: type } = frame;
    if (!(data instanceof Uint8Array) || !(type instanceof Uint8Array)) return;
    const blob = new Blob([new Uint8Array(data)], { type: new TextDecoder().decode(type) });
    const bitmap = await createImageBitmap(blob);
    if (canvas.width !== bitmap.width) canvas.width = bitmap.width;
    if (canvas.height !== bitmap.height) canvas.height = bitmap.height;
    context?.drawImage(bitmap, 0, 0);
    bitmap.close();
    page = { width: numberOf(frame[field.width]), height: numberOf(frame[field.height]) };
    shown += 1;
  }

  async function drawAll(): Promise<void> {
    isDrawing = true;
    for (let next = waiting; next; next = waiting) {
      waiting = undefined;
      // An unreadable frame is acknowledged too, since the next one may be readable.
      await draw(next).catch(() => undefined);
      next.onShown(numberOf(next.frame[field.sequence]));
    }
    isDrawing = false;
  }

  return {
    show(message, onShown) {
      const { [frameField]: frame } = readFields(message);
      if (!(frame instanceof Uint8Array)) return;
      waiting = { frame: readFields(frame), onShown };
      if (!isDrawing) void drawAll();
    },
    paint(video) {
      const { videoWidth: width, videoHeight: height } = video;
      if (width === 0) return;
      if (canvas.width !== width) canvas.width = width;
      if (canvas.height !== height) canvas.height = height;
      context?.drawImage(video, 0, 0);
      // A tab is captured in CSS pixels, independent of the device scale.
      page = { width, height };
      shown += 1;
    },
    pointAt({ clientX, clientY }) {
      const box = canvas.getBoundingClientRect();
      // The picture keeps its aspect ratio, centred in its box.
      const scale = Math.min(box.width / canvas.width, box.height / canvas.height);
      const [width, height] = [canvas.width * scale, canvas.height * scale];
      const part = (at: number, from: number, size: number) => Math.min(1, Math.max(0, (at - from) / size));
      return {
        x: part(clientX, box.left + (box.width - width) / 2, width) * page.width,
        y: part(clientY, box.top + (box.height - height) / 2, height) * page.height,
      };
    },
    get shown() {
      return shown;
    },
  };
}
