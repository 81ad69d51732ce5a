import { serve } from "@hono/node-server";
import { Hono } from "hono";
import { createPop } from "@agarose/worker/pop";
import config from "./agarose.json" with { type: "json" };

const pop = createPop(config);
const app = new Hono();
app.get("/o/*", (c) => pop.fetch(c.req.raw));
app.get("/", (c) => c.text("Your own app"));

serve({ fetch: app.fetch, port: Number(process.env["PORT"] ?? 3000) });
