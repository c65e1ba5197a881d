/** What is counted of the clients of all sessions of this process. */
export const lendTotals = {
  /** Those that are connected. */
  clients: 0,
  /** Messages that they have sent. */
  messages: 0,
};
