/**
 * The routes of a scrubber: its state, its metrics, and a walk out of turn.
 */
import { metricsOf } from "@agarose/storage/maintenance/scrub/metrics";
import { Hono } from "hono";
import { bearerAuth } from "hono/bearer-auth";
import { timingSafeEqual } from "hono/utils/buffer";
import { begin, currentWalk, lastWalk, openWalk, type OpenWalk, type ScrubberEnv } from "./walks.ts";

const TOKEN_LENGTH_MIN = 16;

/** All routes need `ADMIN_TOKEN`. Without one, none is there. */
export const app = new Hono<{ Bindings: ScrubberEnv }>();
app.use(async ({ env, json }, next) => {
  const { ADMIN_TOKEN: token = "" } = env;
  if (token.length >= TOKEN_LENGTH_MIN) return next();
  const message = `ADMIN_TOKEN has ${token.length} characters and needs ${TOKEN_LENGTH_MIN}: wrangler secret put`;
  return json({ code: "CONFIG_INVALID", message }, 500);
});
app.use(
  bearerAuth<{ Bindings: ScrubberEnv }>({ verifyToken: (token, { env }) => timingSafeEqual(token, env.ADMIN_TOKEN!) }),
);
app.get("/v1/scrub", async ({ env, json }) =>
  json({
    current: (await currentWalk(env)) ?? null,
    open: (await openWalk(env)) ?? null,
    last: (await lastWalk(env)) ?? null,
  }),
);
app.post("/v1/scrub", async ({ env, json }) => {
  const { id, isNew } = await begin(env);
  return json({ id, isNew }, isNew ? 201 : 200);
});
app.get("/metrics", async ({ env, text }) => {
  const [last, open] = await Promise.all([lastWalk(env), openWalk(env)]);
  return text(`${last ? metricsOf(last.totals, last) : ""}${openMetrics(open)}`, 200, {
    "content-type": "text/plain; version=0.0.4",
  });
});

/** The gauges of a walk that has not reached its end; 0 while there is none. */
function openMetrics(open: OpenWalk | undefined): string {
  const gauges = [
    [
      "open_walk_start_timestamp_seconds",
      "When the walk began that has not reached its end.",
      (open?.startMs ?? 0) / 1000,
    ],
    ["open_walk_objects", "Objects that this walk has looked at.", open?.position.totals.objects ?? 0],
  ] as const;
  return gauges
    .map(([name, help, value]) => {
      return `# HELP agarose_scrub_${name} ${help}\n# TYPE agarose_scrub_${name} gauge\nagarose_scrub_${name} ${value}\n`;
    })
    .join("");
}
