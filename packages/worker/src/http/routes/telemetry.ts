/**
 * `POST /v1/telemetry`: what a client has measured and read since its last report:
 * `{"token", "regions": [{"name", "samples", "meanMs", "meanBytes"}], "reads": {"<key>": <count>}}`.
 *
 * Every plan carries a token, which is valid for some minutes from the address that it was issued to.
 * `telemetry-intake.ts` bounds how much of a report counts, and `region-estimates.ts` how far it can move an estimate.
 */
import { AgaroseError, parseKey } from "@agarose/core";
import type { Context } from "hono";
import * as v from "valibot";
import { log } from "../../runtime/log.ts";
import { problemOf } from "../../runtime/variables.ts";
import type { Invocation } from "../../runtime/invocation.ts";
import type { RegionSample } from "../../regions/region-estimates.ts";
import type { ReportedReads } from "../../popularity/telemetry-intake.ts";
import { clientAddress, clientNetwork } from "../../runtime/client-address.ts";
import { popState } from "../../cache/pop-state-stub.ts";
import { invocationOf, type AppEnv } from "../http.ts";

/** A report of more bytes is refused. */
export const REPORT_BYTES_MAX = 16 * 1024;
const REGIONS_MAX = 64;
const REPORT_KEYS_MAX = 100;
const MEAN_MS_MAX = 60_000;
const MEAN_BYTES_MAX = 64 * 1024 * 1024;

const between = (min: number, max: number) =>
  v.pipe(
    v.number(),
    v.check((value) => value > min && value <= max, `must be above ${min} and at most ${max}`),
  );
const schema = v.object({
  token: v.optional(v.unknown()),
  regions: v.pipe(
    v.array(
      v.object({
        name: v.string(),
        meanMs: between(0, MEAN_MS_MAX),
        meanBytes: v.optional(between(-1, MEAN_BYTES_MAX), 0),
      }),
    ),
    v.maxLength(REGIONS_MAX, `must have at most ${REGIONS_MAX} entries`),
  ),
  reads: v.pipe(
    v.optional(
      v.pipe(
        v.custom<object>((reads) => !Array.isArray(reads), "must be an object of counts by key"),
        v.record(v.string(), v.pipe(v.number(), v.safeInteger(), v.minValue(1))),
      ),
      {},
    ),
    v.check((reads) => Object.keys(reads).length <= REPORT_KEYS_MAX, `must have at most ${REPORT_KEYS_MAX} keys`),
  ),
});

/** A checked report. */
export interface Report {
  readonly token: unknown;
  readonly samples: readonly RegionSample[];
  readonly reads: readonly ReportedReads[];
}

/** Answers 204. Throws REQUEST_INVALID for a malformed report and FORBIDDEN for one without a valid token. */
export async function telemetry(c: Context<AppEnv>): Promise<Response> {
  const invocation = invocationOf(c);
  const { settings, tokens, telemetry: buffer } = invocation.isolate;
  const regions = new Set(settings.regions.map(({ name }) => name));
  const { token, samples, reads } = parseReport(await c.req.text(), regions);
  if (!tokens.hasKey) await loadKey(invocation);
  const address = clientAddress(c.req.raw.headers);
  const client = await tokens.check(token, address);
  buffer.report({ client, network: clientNetwork(address), samples, reads }, invocation.waitUntil);
  return new Response(null, { status: 204 });
}

/** Resolves to the token for a plan's reader, or to none while the secret is still on its way: no read waits for it. */
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

/** Returns a report with the regions that this PoP knows. Throws REQUEST_INVALID, KEY_INVALID or KEY_TOO_LONG. */
export function parseReport(text: string, regions: ReadonlySet<string>): Report {
  const result = v.safeParse(v.pipe(v.string(), v.parseJson(undefined, "is not JSON"), schema), text);
  if (!result.success) throw new AgaroseError("REQUEST_INVALID", `report ${problemOf(result.issues[0])}`);
  const { token, regions: entries, reads } = result.output;
  const samples = new Map<string, RegionSample>();
  for (const { name, meanMs, meanBytes } of entries) {
    if (regions.has(name)) samples.set(name, { region: name, ms: meanMs, bytes: meanBytes });
  }
  return {
    token,
    samples: [...samples.values()],
    reads: Object.entries(reads).map(([key, count]) => ({ key: parseKey(key), reads: count })),
  };
}
