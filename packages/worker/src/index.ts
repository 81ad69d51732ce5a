/** The Cloudflare Worker of one PoP: routes, the Cron Trigger, the Durable Objects. */
import { Hono } from "hono";
import { adminOnly } from "./http/auth.ts";
import type { Env } from "./http/settings.ts";
import { noSuchRoute, openToAllOrigins, preflight, refuse, type AppEnv } from "./http/http.ts";
import { period } from "./cache-manager/period.ts";
import { healthz } from "./http/routes/healthz.ts";
import { metrics } from "./http/routes/metrics.ts";
import { object } from "./http/routes/object.ts";
import { peerChunk } from "./http/routes/peer-chunk.ts";
import { peerExchange } from "./http/routes/peers.ts";
import { peerOic } from "./http/routes/peer-oic.ts";
import { plans } from "./http/routes/plans.ts";
import { purgeRoute } from "./http/routes/purge.ts";
import { read } from "./http/routes/read.ts";
import { status } from "./http/routes/health.ts";
import { telemetry } from "./http/routes/telemetry.ts";

export type { Env } from "./http/settings.ts";
export { PeerState } from "./peers/peer-state.ts";
export { PopState } from "./state/pop-state.ts";
export { RequestMonitor } from "./request-monitor/request-monitor.ts";

const app = new Hono<AppEnv>();
app.use(openToAllOrigins);
app.options("*", preflight);
// Hono answers HEAD from GET.
app.get("/o/*", object);
app.get("/v1/read/*", read);
app.get("/v1/plans", plans);
app.get("/v1/chunk/*", peerChunk);
app.post("/v1/peers", peerExchange);
app.post("/v1/telemetry", telemetry);
app.get("/v1/oic/*", adminOnly, peerOic);
app.get("/v1/status", adminOnly, status);
app.post("/v1/purge", adminOnly, purgeRoute);
app.get("/metrics", adminOnly, metrics);
app.get("/healthz", healthz);
app.notFound(noSuchRoute);
app.onError(refuse);

export default {
  fetch: (request, env, context) => app.fetch(request, env, context),
  scheduled: (_event, env, context) => period(env, context),
} satisfies ExportedHandler<Env>;
