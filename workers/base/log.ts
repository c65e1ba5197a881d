/** The part of a pino logger that the worker's parts are given. */
export interface Log {
  /** Something that only a search for a fault asks for. */
  debug(object: object, message: string): void;
  /** Something that an operator may want to know of. */
  info(object: object, message: string): void;
  /** Something that works, but not as it should. */
  warn(object: object, message: string): void;
  /** Something that needs an operator. */
  error(object: object, message: string): void;
}
