/** A service worker of Serwist, as its documentation says, whose routes below `/ec/` are read through Agarose. */
import { createHandle, type ClientConfigInput } from "@agarose/sw/sw";
import { Serwist } from "serwist";

declare const CONFIG: ClientConfigInput;

const serwist = new Serwist({
  precacheEntries: [{ url: "/placeholder.txt", revision: "1" }],
  skipWaiting: true,
  clientsClaim: true,
});

const handle = createHandle(CONFIG);
serwist.registerCapture(
  ({ url, sameOrigin }) => sameOrigin && url.pathname.startsWith("/ec/"),
  ({ request, event }) => handle(request, event) ?? fetch(request),
);
// Not for reads that fail: they have an answer.
serwist.setCatchHandler(async () => new Response("caught"));
serwist.addEventListeners();
