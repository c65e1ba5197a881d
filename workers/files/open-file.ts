import type { FileHandle } from "node:fs/promises";
import type { SessionFile } from "../../src/gen/pilothouse/v1/file_pb.ts";

/** A file that is being read; it stays what it was when it was opened, whatever becomes of its name. */
export interface OpenFile extends AsyncDisposable {
  readonly file: SessionFile;
  readonly handle: FileHandle;
}
