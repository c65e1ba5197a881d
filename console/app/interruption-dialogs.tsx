import { useEffect, useState, useSyncExternalStore } from "react";
import { LegalService } from "../../src/gen/pilothouse/v1/legal_pb.ts";
import { MfaService } from "../../src/gen/pilothouse/v1/mfa_pb.ts";
import { type Interruption, interruptionStore } from "../api/interruptions.ts";
import { useChange } from "../api/queries.ts";
import { Actions, Button } from "../ui/button.tsx";
import { Dialog } from "../ui/dialog.tsx";
import { TextField, textOf } from "../ui/field.tsx";
import { Form } from "../ui/form.tsx";
import { ProblemNotice } from "../ui/state.tsx";

/** Dialogs and notices of waiting requests: step-up, terms, rate limit, no network. */
export function Interruptions() {
  const current = useSyncExternalStore(interruptionStore.subscribe, interruptionStore.current);
  return (
    <>
      {current?.kind === "step-up" && <StepUpDialog interruption={current} />}
      {current?.kind === "terms" && <TermsDialog interruption={current} />}
      <LimitNotice />
      <OfflineNotice />
    </>
  );
}

function StepUpDialog({ interruption }: { readonly interruption: Interruption }) {
  const stepUp = useChange(MfaService.method.stepUp, { onDone: () => interruption.finish(true) });
  return (
    <Dialog
      title="Confirm that it is you"
      about="This needs your second factor. The confirmation holds for 10 minutes."
      isOpen
      onClose={() => interruption.finish(false)}
    >
      <Form onSubmit={(form) => stepUp.run({ code: textOf(form, "code") ?? "" })}>
        <TextField
          label="Code"
          name="code"
          autoComplete="one-time-code"
          inputMode="text"
          hint="The 6 digits of your app, or a recovery code"
          required
          maxLength={32}
        />
        <ProblemNotice problem={stepUp.problem} />
        <Actions>
          <Button onClick={() => interruption.finish(false)}>Cancel</Button>
          <Button type="submit" kind="primary" isPending={stepUp.isPending}>
            Confirm
          </Button>
        </Actions>
      </Form>
    </Dialog>
  );
}

function TermsDialog({ interruption }: { readonly interruption: Interruption }) {
  const accept = useChange(LegalService.method.acceptLegal, { onDone: () => interruption.finish(true) });
  return (
    <Dialog
      title="New terms"
      about="An owner or admin accepts them for the account. Until then only your own data can be read."
      isOpen
      onClose={() => interruption.finish(false)}
    >
      <p className="mb-4">
        <a href={interruption.url} target="_blank" rel="noreferrer" className="text-accent-text underline">
          Read the terms ({interruption.revisionId})
        </a>
      </p>
      <ProblemNotice problem={accept.problem} />
      <Actions>
        <Button onClick={() => interruption.finish(false)}>Not now</Button>
        <Button
          kind="primary"
          isPending={accept.isPending}
          onClick={() => accept.run({ revisionId: interruption.revisionId })}
        >
          Accept
        </Button>
      </Actions>
    </Dialog>
  );
}

function subscribeToNetwork(listener: () => void): () => void {
  addEventListener("online", listener);
  addEventListener("offline", listener);
  return () => {
    removeEventListener("online", listener);
    removeEventListener("offline", listener);
  };
}

function OfflineNotice() {
  const isOnline = useSyncExternalStore(subscribeToNetwork, () => navigator.onLine);
  if (isOnline) return null;
  return (
    <p role="status" className={noticeClass}>
      You are offline. The page continues when the network is back.
    </p>
  );
}

const noticeClass =
  "fixed inset-x-3 top-3 z-60 mx-auto w-fit rounded-xl border border-line bg-raised px-4 py-2.5 text-sm shadow-high";

/** Counts down to the next try while requests wait for a rate limit. */
function LimitNotice() {
  const until = useSyncExternalStore(interruptionStore.subscribe, interruptionStore.limitedUntil);
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    if (until === 0) return;
    setNow(Date.now());
    const timer = setInterval(() => setNow(Date.now()), 1_000);
    return () => clearInterval(timer);
  }, [until]);
  if (until === 0) return null;
  const seconds = Math.max(1, Math.ceil((until - now) / 1_000));
  return (
    <p role="status" className={noticeClass}>
      Too many requests. The page continues in {seconds} s.
    </p>
  );
}
