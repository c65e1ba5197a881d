import "../style.css";
import { TransportProvider } from "@connectrpc/connect-query";
import { QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { createRoot } from "react-dom/client";
import { queryClient } from "../api/queries.ts";
import { transport } from "../api/transport.ts";
import { Toasts } from "../ui/toast.tsx";
import { applyScheme } from "./color-scheme.ts";
import { router } from "./router.tsx";

const root = document.querySelector("#root");
if (!root) throw new Error("expected an element with the id root");

// Radix's scroll lock adds a style element, and reads its nonce here.
Object.assign(globalThis, { __webpack_nonce__: document.querySelector<HTMLScriptElement>("script[nonce]")?.nonce });
applyScheme();
createRoot(root).render(
  <TransportProvider transport={transport}>
    <QueryClientProvider client={queryClient}>
      <RouterProvider router={router} />
      <Toasts />
    </QueryClientProvider>
  </TransportProvider>,
);
