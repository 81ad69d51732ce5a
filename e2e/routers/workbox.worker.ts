/** A service worker of Workbox, as its documentation says, whose routes below `/ec/` are read through Agarose. */
import { AgaroseStrategy, type ClientConfigInput } from "@agarose/sw/sw";
import { clientsClaim, type WorkboxPlugin } from "workbox-core";
import { registerRoute, setCatchHandler } from "workbox-routing";
import { recorder } from "./recorder.ts";

declare const CONFIG: ClientConfigInput;
declare const self: ServiceWorkerGlobalScope;

void self.skipWaiting();
clientsClaim();

const firstBytes: WorkboxPlugin = {
  requestWillFetch: async ({ request }) => {
    const count = request.headers.get("x-first-bytes");
    return count === null ? request : new Request(request, { headers: { range: `bytes=0-${Number(count) - 1}` } });
  },
};
const placeholder: WorkboxPlugin = {
  handlerDidError: async ({ request }) => (request.url.includes("placeheld") ? new Response("placeholder") : undefined),
};

registerRoute(
  ({ url }) => url.pathname.startsWith("/ec/"),
  new AgaroseStrategy(CONFIG, { plugins: [firstBytes, recorder, placeholder] }),
);
// Not for reads that fail: they have an answer.
setCatchHandler(async () => new Response("caught"));
