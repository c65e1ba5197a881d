/** Missing requirements by the error output of the probe commands. */
const missingByOutput: readonly (readonly [errorOutput: RegExp, missing: string])[] = [
  [/no uids for slots/, "the uids 32768 to 49151 in the user namespace, or an ordinary user in place of root"],
  [/RTNETLINK/, "the capability CAP_NET_ADMIN"],
  [/nsenter:/, "the capability CAP_SYS_ADMIN, or the seccomp rule `setns`"],
  [/setpriv:/, "the capabilities CAP_SETUID, CAP_SETGID and CAP_SETPCAP"],
  [/chroot:/, "the seccomp rule `chroot`, which most runtimes grant with the capability CAP_SYS_CHROOT"],
];

const noNamespace = "the capability CAP_SYS_ADMIN, or the seccomp rules `clone` and `unshare`";

const noUserNamespace =
  "user namespaces (sysctl user.max_user_namespaces; kernel.apparmor_restrict_unprivileged_userns on Ubuntu), or the " +
  "seccomp rules `clone`, `clone3` and `unshare`";

const grants =
  "An ordinary user (such as uid 1000) needs no capabilities and may have no-new-privileges, beside the " +
  "container runtime's default seccomp profile plus `clone`, `clone3`, `unshare`, `setns` and `chroot`. Root needs " +
  "CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_FOWNER, CAP_KILL, CAP_NET_ADMIN, CAP_SETGID, CAP_SETPCAP, CAP_SETUID, " +
  "CAP_SYS_ADMIN and CAP_SYS_CHROOT.";

interface Refusal {
  /** Failed operation, such as "cannot create a network namespace". */
  readonly what: string;
  /** Error output of the probe command, or the reason why there was no probe. */
  readonly errorOutput: string;
  /**
   * Selects what is missing if no pattern matches the error output: true for a capability, false for user namespaces.
   */
  readonly isRoot: boolean;
  /** Setting that disables the requirement. */
  readonly optOut?: "ISOLATION=flags" | "BROWSER_SANDBOX=off";
}

/** Thrown if the worker cannot confine browsers as configured. The message states what is missing and the remedies. */
export class ConfinementError extends Error {
  override readonly name = "ConfinementError";

  constructor({ what, errorOutput, isRoot, optOut }: Refusal) {
    const missing =
      missingByOutput.find(([pattern]) => pattern.test(errorOutput))?.[1] ?? (isRoot ? noNamespace : noUserNamespace);
    const optOutHint = optOut
      ? `\nOr set ${optOut}, which lets pages get closer to this machine's network and files.`
      : "";
    super(`the worker does not start: ${what} (${errorOutput}).\nMissing: ${missing}.\n${grants}${optOutHint}`);
  }
}
