/** The Cloudflare Worker of one PoP: routes, the Cron Trigger, the Durable Objects. */
import { recordUse, tick } from "./cache/tick.ts";
import { createApplication, READ_HANDLERS } from "./http/application.ts";
import type { Env } from "./http/http.ts";
import { bodyOfAtMost } from "./http/middleware/checks.ts";
import { status } from "./http/routes/health.ts";
import { metrics } from "./http/routes/metrics.ts";
import { peerChunk, peerExchange } from "./http/routes/peers.ts";
import { PURGE_BYTES_MAX, purgeRoute } from "./http/routes/purge.ts";
import { tile } from "./http/routes/tile.ts";
import { MESSAGE_BYTES_MAX } from "./peers/peer-message.ts";
import { forEntry } from "./runtime/continents.ts";

export type { Env } from "./http/http.ts";
export { PeriodicPopState as PopState } from "./cache/tick.ts";
export { PeerState } from "./peers/peer-state.ts";
export { RequestMonitor } from "./popularity/request-monitor.ts";

const application = createApplication({
  ...READ_HANDLERS,
  tile: [tile],
  chunk: [peerChunk],
  peers: [bodyOfAtMost(MESSAGE_BYTES_MAX), peerExchange],
  status: [status],
  metrics: [metrics],
  purge: [bodyOfAtMost(PURGE_BYTES_MAX), purgeRoute],
});

export default {
  fetch(request, env, context) {
    const own = forEntry(env, request);
    recordUse(own, new URL(request.url).host, context);
    return application(request, own, context);
  },
  scheduled: (_event, env, context) => tick(env, context),
} satisfies ExportedHandler<Env>;
