import { http, HttpResponse } from "msw";
import { setupWorker } from "msw/browser";

const mocks = setupWorker(http.get("/api/plan", () => HttpResponse.json({ plan: "free" })));
await mocks.start({ serviceWorker: { url: "/worker.js" }, onUnhandledRequest: "bypass" });
