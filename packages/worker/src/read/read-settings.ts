/** How a PoP reads, as its variables say; with the settings of the regions and peers that it reads from. */
import { parsePopSettings, type PopSettings } from "../peers/peer-settings.ts";
import { parseVariables, wholeNumber } from "../platform/variables.ts";
import { parseRegionSettings, type RegionSettings } from "../region-manager/region-settings.ts";
import { parseTelemetryKey } from "../request-monitor/telemetry-token.ts";

/** The settings that an isolate reads by. */
export interface ReadSettings extends RegionSettings, PopSettings {
  /** Requests beyond k. */
  readonly delta: number;
  readonly manifestTtlSeconds: number;
  /** What the plan at Cloudflare allows one invocation: fetches, and calls of KV, Cache API and Durable Objects. */
  readonly subrequestsMax: number;
  /** Undefined: the PoP creates a key for itself. */
  readonly telemetryKey?: string | undefined;
}

/** Workers Paid; Free allows 50. */
const SUBREQUESTS_MAX_DEFAULT = 10_000;
const MANIFEST_TTL_SECONDS_DEFAULT = 60;

/** The variables of this room. */
export const READ_VARIABLES = {
  DELTA: wholeNumber("How many requests beyond k a read makes, at the edge and as advice to clients.", 1, 255),
  MANIFEST_TTL_SECONDS: wholeNumber(
    "How many seconds a key may keep naming an old version.",
    MANIFEST_TTL_SECONDS_DEFAULT,
    86_400,
  ),
  SUBREQUESTS_MAX: wholeNumber(
    "How many subrequests your Cloudflare plan allows one invocation: 10000 on Workers Paid, 50 on Free.",
    SUBREQUESTS_MAX_DEFAULT,
    10_000_000,
  ),
};

/** Checks the variables of this room, of regions, of peers and of telemetry. Throws CONFIG_INVALID. */
export function parseReadSettings(env: object): ReadSettings {
  const { DELTA, MANIFEST_TTL_SECONDS, SUBREQUESTS_MAX } = parseVariables(READ_VARIABLES, env);
  return {
    ...parsePopSettings(env),
    ...parseRegionSettings(env),
    delta: DELTA,
    manifestTtlSeconds: MANIFEST_TTL_SECONDS,
    subrequestsMax: SUBREQUESTS_MAX,
    telemetryKey: parseTelemetryKey(env),
  };
}
