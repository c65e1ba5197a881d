import { create } from "@bufbuild/protobuf";
import {
  type CdpRequest,
  CdpRequestSchema,
  type ConnectOptions,
  ConnectOptionsSchema,
  type ConnectRequest,
  ConnectRequestSchema,
} from "../../src/gen/pilothouse/v1/session_pb.ts";
import { compileQueryReader } from "../rest/request-reader.ts";
import { tokenVariable } from "../rest/template.ts";

/** A message of a relaying method that carries a client's data. */
export type RelayPart = CdpRequest | ConnectRequest;

/** Messages of a relaying method for the events of a WebSocket. */
export interface RelayInput {
  readonly first: RelayPart;
  part(data: Uint8Array, last: boolean): RelayPart;
  /** Message to send when the client closes the WebSocket normally. Undefined if the method has none. */
  readonly done?: RelayPart;
}

/** Returns the messages of `SessionService.Cdp`. */
export function cdpInput(sessionId: string): RelayInput {
  return {
    first: create(CdpRequestSchema, { sessionId }),
    part: (data, last) => create(CdpRequestSchema, { data, last }),
  };
}

const readOptions = compileQueryReader(ConnectOptionsSchema);

/** Returns the messages of `SessionService.Connect`. Throws `validation-failed` for an invalid query. */
export function connectInput(query: URLSearchParams): RelayInput {
  query.delete(tokenVariable);
  // Casts the message to the type that its descriptor declares.
  const options = readOptions(query) as ConnectOptions;
  return {
    first: create(ConnectRequestSchema, { options }),
    part: (data, last) => create(ConnectRequestSchema, { data, last }),
    done: create(ConnectRequestSchema, { done: true }),
  };
}
