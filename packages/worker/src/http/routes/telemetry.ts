/**
 * `POST /v1/telemetry`: what a client has measured and read since its last report:
 * `{"token", "regions": [{"name", "samples", "meanMs", "meanBytes"}], "reads": {"<key>": <count>}}`.
 *
 * The token comes with every plan and is good for some minutes from the address that it was given to. How much of a report
 * counts says `telemetry-intake.ts`; how far it can move an estimate, `region-estimates.ts`.
 */
import { AgaroseError, parseKey } from "@agarose/core";
import type { Context } from "hono";
import type { AppEnv } from "../http.ts";
import { Invocation } from "../../read/isolate.ts";
import { log } from "../../platform/log.ts";
import { popState } from "../../request-monitor/request-counter.ts";
import type { RegionSample } from "../../region-manager/region-estimates.ts";
import type { ReportedReads } from "../../request-monitor/telemetry-intake.ts";
import { clientAddress } from "../../request-monitor/telemetry-token.ts";

const BODY_BYTES_MAX = 16 * 1024;
const REGIONS_MAX = 64;
const KEYS_MAX = 100;
const MEAN_MS_MAX = 60_000;
const MEAN_BYTES_MAX = 64 * 1024 * 1024;

export interface Report {
  readonly token: unknown;
  readonly samples: readonly RegionSample[];
  readonly reads: readonly ReportedReads[];
}

export async function telemetry(c: Context<AppEnv>): Promise<Response> {
  const invocation = new Invocation(c.env, c.executionCtx);
  const { settings, tokens, telemetry: buffer } = invocation.isolate;
  const regions = new Set(settings.regions.map(({ name }) => name));
  const { token, samples, reads } = parseReport(await readBody(c.req.raw), regions);
  if (!tokens.hasKey) await loadKey(invocation);
  const client = await tokens.check(token, clientAddress(c.req.raw.headers));
  buffer.report({ client, samples, reads }, c.env, invocation.waitUntil);
  return new Response(null, { status: 204 });
}

/**
 * The token for a plan's reader. While the secret must first be had from the Durable Object, none: no read waits for that.
 */
export async function telemetryToken(
  invocation: Invocation,
  headers: { get(name: string): string | null },
): Promise<{ telemetry?: string }> {
  const { tokens, settings } = invocation.isolate;
  if (!tokens.hasKey && settings.telemetryKey === undefined) {
    if (tokens.mayAskForKey()) {
      invocation.waitUntil(loadKey(invocation).catch((error: unknown) => log("warn", "no telemetry key", { error })));
    }
    return {};
  }
  if (!tokens.hasKey) await loadKey(invocation);
  return { telemetry: await tokens.issue(clientAddress(headers)) };
}

async function loadKey({ isolate: { settings, tokens }, env }: Invocation): Promise<void> {
  await tokens.setKey(settings.telemetryKey ?? (await popState(env).telemetryKey()));
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

/** A report, of it the regions that this PoP knows. Throws REQUEST_INVALID, KEY_INVALID or KEY_TOO_LONG. */
export function parseReport(text: string, regions: ReadonlySet<string>): Report {
  let json: { token?: unknown; regions?: unknown; reads?: unknown } | null;
  try {
    json = JSON.parse(text) as typeof json;
  } catch (error) {
    throw new AgaroseError("REQUEST_INVALID", "report is not JSON", {}, error);
  }
  return { token: json?.token, samples: parseSamples(json?.regions, regions), reads: parseReads(json?.reads ?? {}) };
}

function parseSamples(entries: unknown, regions: ReadonlySet<string>): RegionSample[] {
  if (!Array.isArray(entries) || entries.length > REGIONS_MAX) {
    throw new AgaroseError("REQUEST_INVALID", `report has no list "regions" of at most ${REGIONS_MAX} entries`);
  }
  const samples = new Map<string, RegionSample>();
  for (const { name, meanMs, meanBytes = 0 } of entries.map((entry) => (entry ?? {}) as Record<string, unknown>)) {
    if (
      typeof name !== "string" ||
      !isWithin(meanMs, MEAN_MS_MAX) ||
      !(meanBytes === 0 || isWithin(meanBytes, MEAN_BYTES_MAX))
    ) {
      throw new AgaroseError(
        "REQUEST_INVALID",
        `report has an entry without a name, a meanMs up to ${MEAN_MS_MAX} and a meanBytes up to ${MEAN_BYTES_MAX}`,
      );
    }
    if (regions.has(name)) samples.set(name, { region: name, ms: meanMs, bytes: Number(meanBytes) });
  }
  return [...samples.values()];
}

function parseReads(json: unknown): ReportedReads[] {
  const entries = typeof json === "object" && json !== null && !Array.isArray(json) ? Object.entries(json) : undefined;
  if (
    !entries ||
    entries.length > KEYS_MAX ||
    !entries.every(([, count]) => Number.isSafeInteger(count) && count > 0)
  ) {
    throw new AgaroseError("REQUEST_INVALID", `report has "reads" that are no counts of at most ${KEYS_MAX} keys`);
  }
  return entries.map(([key, reads]) => ({ key: parseKey(key), reads: reads as number }));
}

function isWithin(value: unknown, max: number): value is number {
  return typeof value === "number" && value > 0 && value <= max;
}
