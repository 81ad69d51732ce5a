/**
 * `POST /v1/telemetry`: region latencies as clients measured them, `{"regions": [{"name", "samples", "meanMs"}]}`.
 *
 * A report counts once per region however many samples it claims, and only quartiles of all reports count (see
 * `region-estimates.ts`), so one client cannot move an estimate far.
 */
import { AgaroseError } from "@agarose/core";
import type { Context } from "hono";
import type { AppEnv } from "../http.ts";
import { Invocation } from "../isolate.ts";
import type { RegionSample } from "../region-estimates.ts";

const BODY_BYTES_MAX = 16 * 1024;
const REGIONS_MAX = 64;
const MEAN_MS_MAX = 60_000;

export async function telemetry(c: Context<AppEnv>): Promise<Response> {
  const invocation = new Invocation(c.env, c.executionCtx);
  const regions = new Set(invocation.isolate.settings.regions.map(({ name }) => name));
  for (const sample of parseReport(await readBody(c.req.raw), regions)) {
    invocation.isolate.counter.observe(sample, c.env, invocation.waitUntil);
  }
  return new Response(null, { status: 204 });
}

/** The body as text. Its declared length decides, which the platform holds a client to. */
async function readBody(request: Request): Promise<string> {
  const bytes = Number(request.headers.get("content-length") ?? Number.NaN);
  if (bytes <= BODY_BYTES_MAX) return request.text();
  await request.body?.cancel();
  throw new AgaroseError(
    "REQUEST_INVALID",
    `report of ${Number.isNaN(bytes) ? "unknown length" : `${bytes} bytes`}: at most ${BODY_BYTES_MAX} are taken`,
    { bytes, max: BODY_BYTES_MAX },
  );
}

/** The samples of regions that this PoP knows. Throws REQUEST_INVALID. */
export function parseReport(text: string, regions: ReadonlySet<string>): RegionSample[] {
  let json: { regions?: unknown };
  try {
    json = JSON.parse(text) as { regions?: unknown };
  } catch (error) {
    throw new AgaroseError("REQUEST_INVALID", "report is not JSON", {}, error);
  }
  const entries = json?.regions;
  if (!Array.isArray(entries) || entries.length > REGIONS_MAX) {
    throw new AgaroseError("REQUEST_INVALID", `report has no list "regions" of at most ${REGIONS_MAX} entries`);
  }
  const samples = new Map<string, RegionSample>();
  for (const { name, meanMs } of entries.map((entry) => (entry ?? {}) as Record<string, unknown>)) {
    if (typeof name !== "string" || typeof meanMs !== "number" || !(meanMs > 0 && meanMs <= MEAN_MS_MAX)) {
      throw new AgaroseError("REQUEST_INVALID", `report has an entry without a name and a meanMs up to ${MEAN_MS_MAX}`);
    }
    if (regions.has(name)) samples.set(name, { region: name, ms: meanMs });
  }
  return [...samples.values()];
}
