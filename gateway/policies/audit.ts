import type { RunPolicy } from "./policy.ts";

/** Lets a method write its audit log entry in the transaction of its change. The option `audit` names the action. */
export const auditPolicy: RunPolicy = {
  name: "audit",
  enforces: ["audit"],
  concerns: ({ rules }) => rules.audit !== "",
  refuses: () => [],
  async around(call, _request, run, { audit: log }) {
    const { rules, method } = call.served;
    let isWritten = false;
    call.auditWith((tx, entry) => {
      isWritten = true;
      return log.append(tx, { ...entry, action: rules.audit, call });
    });
    const answer = await run();
    // A resumed call finds the entry of the interrupted attempt, which was written with its change.
    if (!isWritten && !call.goesOn && !call.isUnchanged)
      throw new Error(`${method} succeeded without an audit log entry`);
    return answer;
  },
};
