/** Formats a number of bytes in the largest unit that fits. */
export function bytesText(bytes: bigint): string {
  const size = Number(bytes);
  if (size < 1_000) return `${size} B`;
  if (size < 1_000_000) return `${(size / 1_000).toFixed(1)} kB`;
  return size < 1_000_000_000 ? `${(size / 1_000_000).toFixed(1)} MB` : `${(size / 1_000_000_000).toFixed(1)} GB`;
}
