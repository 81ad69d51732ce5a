/** A service worker without a router, which listens to requests itself. */
import { createHandle, type ClientConfigInput } from "@agarose/sw/sw";

declare const CONFIG: ClientConfigInput;
declare const self: ServiceWorkerGlobalScope;

const handle = createHandle(CONFIG);
self.addEventListener("install", () => void self.skipWaiting());
self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));
self.addEventListener("fetch", (event) => {
  const response = handle(event.request, event);
  if (response) event.respondWith(response);
});
