/** The Cloudflare Worker of one PoP: routes, the Cron Trigger, the Durable Objects. */
import { Hono } from "hono";
import type { H } from "hono/types";
import { recordUse, tick } from "./cache/tick.ts";
import { noSuchRoute, refuse, type AppEnv, type Env } from "./http/http.ts";
import { adminOnly } from "./http/middleware/auth.ts";
import { bodyOfAtMost, checkSettings } from "./http/middleware/checks.ts";
import { openToAllOrigins } from "./http/middleware/cors.ts";
import { countAnswers } from "./http/middleware/count.ts";
import { headersOfAll } from "./http/middleware/headers.ts";
import { traceTheRequest } from "./http/middleware/trace.ts";
import { ROUTES, type RouteName } from "./http/routes.ts";
import { healthz, status } from "./http/routes/health.ts";
import { metrics } from "./http/routes/metrics.ts";
import { object } from "./http/routes/object.ts";
import { peerChunk, peerExchange } from "./http/routes/peers.ts";
import { plans } from "./http/routes/plans.ts";
import { PURGE_BYTES_MAX, purgeRoute } from "./http/routes/purge.ts";
import { read } from "./http/routes/read.ts";
import { MESSAGE_BYTES_MAX } from "./peers/peer-message.ts";
import { forEntry } from "./runtime/continents.ts";

export type { Env } from "./http/http.ts";
export { PeriodicPopState as PopState } from "./cache/tick.ts";
export { PeerState } from "./peers/peer-state.ts";
export { RequestMonitor } from "./popularity/request-monitor.ts";

const app = new Hono<AppEnv>();
app.use(countAnswers, headersOfAll, openToAllOrigins, checkSettings, traceTheRequest);
const HANDLERS: Readonly<Record<RouteName, H<AppEnv>[]>> = {
  object: [object],
  read: [read],
  plans: [plans],
  chunk: [peerChunk],
  peers: [bodyOfAtMost(MESSAGE_BYTES_MAX), peerExchange],
  health: [healthz],
  status: [status],
  metrics: [metrics],
  purge: [bodyOfAtMost(PURGE_BYTES_MAX), purgeRoute],
};
for (const [name, { method, path, access }] of Object.entries(ROUTES)) {
  const pattern = path.endsWith("/") ? `${path}*` : path;
  const guards = access === "admin token" ? [adminOnly] : [];
  app.on([method], [pattern], ...guards, ...HANDLERS[name as RouteName]);
}
app.notFound(noSuchRoute);
app.onError(refuse);

/**
 * The body of a coded object is stored coded. Without this, workerd codes it once more. It forgets a flag that was set
 * earlier whenever a response is made from another one, as Hono does.
 */
function asStored(response: Response): Response {
  if (!response.headers.has("content-encoding")) return response;
  return new Response(response.body, {
    status: response.status,
    headers: response.headers,
    encodeBody: "manual",
  });
}

export default {
  async fetch(request, env, context) {
    const own = forEntry(env, request);
    recordUse(own, new URL(request.url).host, context);
    return asStored(await app.fetch(request, own, context));
  },
  scheduled: (_event, env, context) => tick(env, context),
} satisfies ExportedHandler<Env>;
