import type { RunPolicy } from "./policy.ts";

/** Has a method write its entry of the audit log, in the transaction of its change, under the action of its option. */
export const audit: RunPolicy = {
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
    // What goes on after an attempt that was cut off finds that attempt's entry beside its change.
    if (!isWritten && !call.goesOn && !call.isUnchanged)
      throw new Error(`${method} has done its work and written nothing into the audit log`);
    return answer;
  },
};
