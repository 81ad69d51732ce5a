/** A service worker of Serwist, as its documentation says, whose routes below `/ec/` are read through Agarose. */
import { AgaroseStrategy, type ClientConfigInput } from "@agarose/sw/sw";
import { PrecacheFallbackPlugin, Serwist, type SerwistPlugin } from "serwist";
import { recorder } from "./recorder.ts";

declare const CONFIG: ClientConfigInput;

const serwist = new Serwist({
  precacheEntries: [{ url: "/placeholder.txt", revision: "1" }],
  skipWaiting: true,
  clientsClaim: true,
});

const firstBytes: SerwistPlugin = {
  requestWillFetch: async ({ request }) => {
    const count = request.headers.get("x-first-bytes");
    return count === null ? request : new Request(request, { headers: { range: `bytes=0-${Number(count) - 1}` } });
  },
};
const placeholder = new PrecacheFallbackPlugin({
  fallbackUrls: [{ url: "/placeholder.txt", matcher: ({ request }) => request.url.includes("placeheld") }],
  serwist,
});

serwist.registerCapture(
  ({ url }) => url.pathname.startsWith("/ec/"),
  new AgaroseStrategy(CONFIG, { plugins: [firstBytes, recorder, placeholder] }),
);
// Not for reads that fail: they have an answer.
serwist.setCatchHandler(async () => new Response("caught"));
serwist.addEventListeners();
