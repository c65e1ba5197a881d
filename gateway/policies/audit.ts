import type { RunPolicy } from "./policy.ts";

/** Lets a method write its audit log entry in the transaction of its change. The option `audit` names the action. */
export const auditPolicy: RunPolicy = {
  name: "audit",
  enforces: ["audit"],
  appliesTo: ({ rules }) => rules.audit !== "",
  problems: () => [],
  async around(call, _request, run, { audit: log }) {
    const { rules, method } = call.served;
    let isWritten = false;
    call.setAudit((tx, entry) => {
      isWritten = true;
      return log.append(tx, { ...entry, action: rules.audit, call });
    });
    const answer = await run();
    // A resumed call finds the entry of the interrupted attempt, which was written with its change.
    if (!isWritten && !call.isResumed && !call.isUnchanged)
      throw new Error(`${method} succeeded without an audit log entry`);
    return answer;
  },
};
