/** A service worker of Workbox, as its documentation says, whose routes below `/ec/` are read through Agarose. */
import { createHandle, type ClientConfigInput } from "@agarose/sw/sw";
import { clientsClaim } from "workbox-core";
import { registerRoute, setCatchHandler } from "workbox-routing";

declare const CONFIG: ClientConfigInput;
declare const self: ServiceWorkerGlobalScope;

void self.skipWaiting();
clientsClaim();

const handle = createHandle(CONFIG);
registerRoute(
  ({ url, sameOrigin }) => sameOrigin && url.pathname.startsWith("/ec/"),
  async ({ request, event }) => handle(request, event) ?? fetch(request),
);
// Not for reads that fail: they have an answer.
setCatchHandler(async () => new Response("caught"));
