import type { FileHandle } from "node:fs/promises";
import type { SessionFile } from "../../src/gen/pilothouse/v1/file_pb.ts";

/** An open file. Its content stays the same even if the name is replaced or deleted. */
export interface OpenFile extends AsyncDisposable {
  readonly file: SessionFile;
  readonly handle: FileHandle;
}
