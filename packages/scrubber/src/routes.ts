/** The routes of a scrubber: its state, its metrics, and a walk out of turn. */
import { metricsOf } from "@agarose/storage/maintenance/scrub/metrics";
import { Hono } from "hono";
import { bearerAuth } from "hono/bearer-auth";
import { timingSafeEqual } from "hono/utils/buffer";
import type { Progress } from "./ledger.ts";
import { claim, ledgerOf, stateOf, type ScrubberEnv } from "./walks.ts";

const TOKEN_LENGTH_MIN = 16;

/** All routes need `ADMIN_TOKEN`, and do not exist without one. */
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
app.get("/v1/scrub", async ({ env, json }) => {
  const ledger = ledgerOf(env);
  const [parent, open, last] = await Promise.all([ledger.parent(), ledger.progress(), ledger.last()]);
  const current = parent === undefined ? undefined : await stateOf(env, parent);
  return json({ current: current ?? null, open: open ?? null, last: last ?? null });
});
app.post("/v1/scrub", async ({ env, json }) => {
  const own = crypto.randomUUID();
  const id = await claim(env, own);
  const isNew = id === own;
  if (isNew) await env.SCRUB.create({ id });
  return json({ id, isNew }, isNew ? 201 : 200);
});
app.get("/metrics", async ({ env, text }) => {
  const ledger = ledgerOf(env);
  const [last, open] = await Promise.all([ledger.last(), ledger.progress()]);
  return text(`${last ? metricsOf(last.totals, last) : ""}${openMetrics(open)}`, 200, {
    "content-type": "text/plain; version=0.0.4",
  });
});

/** The gauges of a walk that has not reached its end; 0 while there is none. */
function openMetrics(open: Progress | undefined): string {
  const gauges = [
    ["start_timestamp_seconds", "When the walk began that has not reached its end.", (open?.startMs ?? 0) / 1000],
    ["objects", "Objects that this walk has looked at.", open?.totals.objects ?? 0],
    ["ranges", "Ranges of keys that it has.", open?.ranges ?? 0],
    ["ranges_done", "Ranges that it has been over.", open?.rangesDone ?? 0],
    ["ranges_failed", "Ranges whose Workflow failed last.", open?.failed.length ?? 0],
    ["requests", "Requests to buckets since the schedule began or continued it.", open?.requests ?? 0],
  ] as const;
  return gauges
    .map(([name, help, value]) => {
      const metric = `agarose_scrub_open_walk_${name}`;
      return `# HELP ${metric} ${help}\n# TYPE ${metric} gauge\n${metric} ${value}\n`;
    })
    .join("");
}
