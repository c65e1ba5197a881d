/** The methods of a pino logger that workers use. */
export interface Log {
  debug(object: object, message: string): void;
  info(object: object, message: string): void;
  /** Logs a degraded condition. */
  warn(object: object, message: string): void;
  /** Logs an error that needs an operator. */
  error(object: object, message: string): void;
}
