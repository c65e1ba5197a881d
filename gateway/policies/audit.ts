import type { RunPolicy } from "./policy.ts";

/**
 * Sets the function with which a method writes its audit log entry in the transaction of its change. Throws if a method
 * changes something without an entry. The option `audit` names the action.
 */
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
    // If the call resumes an interrupted attempt, that attempt has written the entry together with the change.
    if (!isWritten && !call.isResumed && !call.isUnchanged)
      throw new Error(`${method} succeeded without an audit log entry`);
    return answer;
  },
};
