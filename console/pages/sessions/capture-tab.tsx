import { useEffect, useState } from "react";
import { CaptureKind, type CaptureResponse, SessionService } from "../../../src/gen/pilothouse/v1/session_pb.ts";
import { useChange } from "../../api/queries.ts";
import { saveFile } from "../../api/raw-files.ts";
import { Button } from "../../ui/button.tsx";
import { Card } from "../../ui/card.tsx";
import { CheckField } from "../../ui/field.tsx";
import { ProblemNotice } from "../../ui/state.tsx";

const kinds = [
  [CaptureKind.SCREENSHOT, "Screenshot", "page.png"],
  [CaptureKind.DOM_SNAPSHOT, "DOM snapshot", "page.html"],
  [CaptureKind.PDF, "PDF", "page.pdf"],
] as const;

const blobOf = ({ data, contentType }: CaptureResponse): Blob =>
  new Blob([new Uint8Array(data)], { type: contentType });

export function CaptureTab({ sessionId: id }: { readonly sessionId: string }) {
  const [isFull, setFull] = useState(false);
  const capture = useChange(SessionService.method.capture, {
    onDone: (response) => {
      const [, , name] = kinds.find(([kind]) => kind === response.kind) ?? kinds[0];
      if (response.kind !== CaptureKind.SCREENSHOT) saveFile(name, blobOf(response));
    },
  });
  const shown = capture.data?.kind === CaptureKind.SCREENSHOT ? capture.data : undefined;
  return (
    <Card title="Capture the page" about="The service stores no captures: save what you need.">
      <div className="flex flex-col gap-4">
        <div className="flex flex-wrap items-center gap-3">
          {kinds.map(([kind, title]) => (
            <Button
              key={kind}
              isPending={capture.isPending}
              onClick={() => capture.run({ id, kind, ...(kind === CaptureKind.SCREENSHOT && { fullPage: isFull }) })}
            >
              {title}
            </Button>
          ))}
          <CheckField label="Whole page" checked={isFull} onChange={({ target }) => setFull(target.checked)} />
        </div>
        <ProblemNotice problem={capture.problem} />
        {shown && <Picture capture={shown} />}
      </div>
    </Card>
  );
}

function Picture({ capture }: { readonly capture: CaptureResponse }) {
  const [url, setUrl] = useState<string>();
  useEffect(() => {
    const made = URL.createObjectURL(blobOf(capture));
    setUrl(made);
    return () => URL.revokeObjectURL(made);
  }, [capture]);
  if (url === undefined) return null;
  return (
    <div className="flex flex-col items-start gap-3">
      <img src={url} alt="The captured page" className="max-h-[32rem] max-w-full rounded-lg border border-line" />
      <Button size="small" onClick={() => saveFile("page.png", blobOf(capture))}>
        Save
      </Button>
    </div>
  );
}
