import { callUnaryMethod, useTransport } from "@connectrpc/connect-query";
import { useQuery } from "@tanstack/react-query";
import { Maximize2 } from "lucide-react";
import { useRef } from "react";
import { ViewLinkService } from "../../../src/gen/pilothouse/v1/view_link_pb.ts";
import { useMe } from "../../api/me.ts";
import { IconButton } from "../../ui/button.tsx";
import { classes } from "../../ui/classes.ts";
import { Loaded } from "../../ui/state.tsx";

/** Seconds that the link of the view works; the view continues afterwards. */
const linkSeconds = 3_600;

/** The live view of a session, with takeover. Creates a view link, and shows its page in a frame. */
export function LiveView({ sessionId, className }: { readonly sessionId: string; readonly className?: string }) {
  const frame = useRef<HTMLIFrameElement>(null);
  const transport = useTransport();
  const { data: me } = useMe();
  const name = me?.user?.name || me?.user?.email;
  const link = useQuery({
    queryKey: ["live view", sessionId],
    enabled: name !== undefined,
    queryFn: ({ signal }) =>
      callUnaryMethod(
        transport,
        ViewLinkService.method.create,
        { id: sessionId, control: true, name: name ?? "", expiresInSeconds: linkSeconds },
        { signal },
      ),
    // A refetch would create another link and reload the view.
    staleTime: "static",
    gcTime: linkSeconds * 500,
    refetchOnWindowFocus: false,
    refetchOnReconnect: false,
  });
  return (
    <div className={classes("relative overflow-hidden rounded-xl border border-line bg-sunken shadow-low", className)}>
      <Loaded query={link}>
        {({ url = "" }) => {
          const { pathname, hash } = new URL(url);
          return (
            <>
              <iframe
                ref={frame}
                title="Live view of the session"
                src={`${pathname}${hash}`}
                allow="clipboard-read; clipboard-write; fullscreen"
                className="absolute inset-0 size-full"
              />
              <IconButton
                label="Show the live view in full screen"
                className="!absolute right-2 bottom-16 bg-raised opacity-80 shadow-low hover:opacity-100"
                onClick={() => void frame.current?.requestFullscreen()}
              >
                <Maximize2 size={15} aria-hidden="true" />
              </IconButton>
            </>
          );
        }}
      </Loaded>
    </div>
  );
}
