/** What is counted of the clients of all sessions of this process; their messages are counted by the gateways. */
export const lendTotals = {
  /** Those that are connected. */
  clients: 0,
};
