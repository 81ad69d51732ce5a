/** The Cloudflare Worker of one PoP: routes, the Cron Trigger, the Durable Objects. */
import { Hono } from "hono";
import { noteUse, tick } from "./cache-manager/period.ts";
import {
  adminOnly,
  bodyOfAtMost,
  checkSettings,
  nameThePop,
  noSuchRoute,
  openToAllOrigins,
  refuse,
  traceTheRequest,
  type AppEnv,
  type Env,
} from "./http/http.ts";
import { healthz, status } from "./http/routes/health.ts";
import { metrics } from "./http/routes/metrics.ts";
import { object } from "./http/routes/object.ts";
import { peerChunk, peerExchange, peerOic } from "./http/routes/peers.ts";
import { plans } from "./http/routes/plans.ts";
import { PURGE_BYTES_MAX, purgeRoute } from "./http/routes/purge.ts";
import { read } from "./http/routes/read.ts";
import { REPORT_BYTES_MAX, telemetry } from "./http/routes/telemetry.ts";
import { MESSAGE_BYTES_MAX } from "./peers/peer-message.ts";
import { atEntry } from "./region-manager/everywhere.ts";

export type { Env } from "./http/http.ts";
export { PeriodicPopState as PopState } from "./cache-manager/period.ts";
export { PeerState } from "./peers/peer-state.ts";
export { RequestMonitor } from "./request-monitor/request-monitor.ts";

const app = new Hono<AppEnv>();
app.use(nameThePop, openToAllOrigins, checkSettings, traceTheRequest);
// Hono answers HEAD from GET.
app.get("/o/*", object);
app.get("/v1/read/*", read);
app.get("/v1/plans", plans);
app.get("/v1/chunk/*", peerChunk);
app.post("/v1/peers", bodyOfAtMost(MESSAGE_BYTES_MAX), peerExchange);
app.post("/v1/telemetry", bodyOfAtMost(REPORT_BYTES_MAX), telemetry);
app.get("/v1/oic/*", adminOnly, peerOic);
app.get("/v1/status", adminOnly, status);
app.post("/v1/purge", adminOnly, bodyOfAtMost(PURGE_BYTES_MAX), purgeRoute);
app.get("/metrics", adminOnly, metrics);
app.get("/healthz", healthz);
app.notFound(noSuchRoute);
app.onError(refuse);

export default {
  fetch(request, env, context) {
    const own = atEntry(env, request);
    noteUse(own, new URL(request.url).host, context);
    return app.fetch(request, own, context);
  },
  scheduled: (_event, env, context) => tick(env, context),
} satisfies ExportedHandler<Env>;
