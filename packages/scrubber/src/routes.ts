/**
 * The routes of a scrubber: its state, its metrics, and a walk out of turn.
 */
import { metricsOf } from "agarose/scrub";
import { Hono } from "hono";
import { bearerAuth } from "hono/bearer-auth";
import { timingSafeEqual } from "hono/utils/buffer";
import { begin, currentWalk, lastWalk, type ScrubberEnv } from "./walks.ts";

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
  json({ current: (await currentWalk(env)) ?? null, last: (await lastWalk(env)) ?? null }),
);
app.post("/v1/scrub", async ({ env, json }) => {
  const { id, isNew } = await begin(env);
  return json({ id, isNew }, isNew ? 201 : 200);
});
app.get("/metrics", async ({ env, text }) => {
  const last = await lastWalk(env);
  return text(last ? metricsOf(last.totals, last) : "", 200, { "content-type": "text/plain; version=0.0.4" });
});
