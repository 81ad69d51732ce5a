/**
 * Bindings and variables of the Worker (wrangler.toml), and the variables as checked settings.
 */
import { AgaroseError } from "@agarose/core";
import { POLICY_NAMES } from "@agarose/solver";
import type { AccessSettings } from "./access.ts";
import { parseBucketCredentials, type BucketCredentials } from "../region-manager/bucket-signer.ts";
import { parsePeers, type PeerSettings } from "../peers/peer-settings.ts";
import type { PeerState } from "../peers/peer-state.ts";
import type { PopState } from "../state/pop-state.ts";
import type { RequestMonitor } from "../request-monitor/request-monitor.ts";
import type { SpendingSettings } from "../cache-manager/write-budget.ts";

export interface Env {
  /** Chunk cache and configuration. */
  readonly CHUNKS: KVNamespace;
  /** Request counts and popularity, sharded by key. */
  readonly REQUEST_MONITOR: DurableObjectNamespace<RequestMonitor>;
  /** One object per PoP: region estimates, and what the cache manager has written. */
  readonly POP_STATE: DurableObjectNamespace<PopState>;
  /** One object per PoP: what is known of the other PoPs, and what they are told. */
  readonly PEER_STATE: DurableObjectNamespace<PeerState>;
  readonly POP: string;
  /** JSON, see `Region`. */
  readonly REGIONS: string;
  readonly CACHE_BYTES?: string;
  readonly POLICY?: string;
  /** Prices of KV operations, and what the cache manager may spend on them; numbers. */
  readonly KV_WRITE_USD_PER_MILLION?: string;
  readonly KV_READ_USD_PER_MILLION?: string;
  readonly BUDGET_USD_PER_PERIOD?: string;
  readonly BUDGET_USD_PER_MONTH?: string;
  readonly DELTA?: string;
  readonly FUNCTIONAL?: string;
  readonly MANIFEST_TTL_SECONDS?: string;
  readonly SUBREQUESTS_MAX?: string;
  readonly REGION_REQUESTS_MAX?: string;
  /** JSON lists of key prefixes. */
  readonly PRIVATE_PREFIXES?: string;
  readonly PUBLIC_PREFIXES?: string;
  /** Secrets; without both, nobody reads private keys. */
  readonly READ_TOKEN?: string;
  readonly SIGNING_KEY?: string;
  /** Secret; without it the admin routes are closed. */
  readonly ADMIN_TOKEN?: string;
  /** Secret of telemetry tokens; without it, one that the PoP makes for itself. */
  readonly TELEMETRY_KEY?: string;
  /** Secret, JSON, see `parseBucketCredentials`: for regions that are private. */
  readonly BUCKET_CREDENTIALS?: string;
  /** JSON, `[{"name", "url"}]`: the PoPs to co-operate with. */
  readonly PEERS?: string;
  /** Secret that all of them share; without it, or without PEERS, a PoP is on its own. */
  readonly PEER_KEY?: string;
}

export interface Region {
  readonly name: string;
  /** Public base URL of the bucket, told to clients. */
  readonly url: string;
  /** What the PoP itself reads from; `url` unless given. */
  readonly popUrl: string;
  /** Whether reads must be signed, with the credentials that `BUCKET_CREDENTIALS` has for it. */
  readonly private?: boolean;
  /** Region that requests are signed for. */
  readonly awsRegion?: string;
  /** What its provider charges for a GB read, in US dollars: fills of the cache ask cheap sources first. Default: 0. */
  readonly egressUsdPerGb?: number;
}

export interface Settings {
  readonly pop: string;
  readonly regions: readonly Region[];
  readonly cacheBytes: number;
  /** Of the solver's policies; or `off`: cache nothing, and evict what is cached. */
  readonly policy: string;
  /** Whether caches hold rows of the code that no region has, instead of copies of stored chunks. */
  readonly functional: boolean;
  readonly spending: SpendingSettings;
  readonly delta: number;
  readonly manifestTtlSeconds: number;
  /** What the plan at Cloudflare allows one invocation: fetches, and calls of KV, Cache API and Durable Objects. */
  readonly subrequestsMax: number;
  /** Requests of one isolate that may wait for one region at a time; 0: any number. */
  readonly regionRequestsMax?: number;
  readonly bucketCredentials?: Readonly<Record<string, BucketCredentials>>;
  readonly access: AccessSettings;
  readonly adminToken: string | undefined;
  readonly telemetryKey?: string | undefined;
  /** Undefined for a PoP on its own. */
  readonly peers?: PeerSettings | undefined;
}

const CACHE_BYTES_DEFAULT = 1e9;
const MANIFEST_TTL_SECONDS_DEFAULT = 60;
/** Shorter ones can be guessed. */
const SECRET_LENGTH_MIN = 16;
/** Workers Paid; Free allows 50. */
const SUBREQUESTS_MAX_DEFAULT = 10_000;
/** Eight invocations' connections: more wait at a bucket only when it is in trouble. */
const REGION_REQUESTS_MAX_DEFAULT = 48;

/** The variables of `env`, checked. Throws CONFIG_INVALID, naming the variable. */
export function parseSettings(env: Env): Settings {
  if (!env.POP) throw invalid("POP", "is not set: give this PoP a name");
  return {
    pop: env.POP,
    regions: parseRegions(env.REGIONS),
    cacheBytes: wholeNumber("CACHE_BYTES", env.CACHE_BYTES, CACHE_BYTES_DEFAULT, Number.MAX_SAFE_INTEGER),
    policy: parsePolicy(env.POLICY),
    spending: {
      writeUsdPerMillion: amount("KV_WRITE_USD_PER_MILLION", env.KV_WRITE_USD_PER_MILLION, 5),
      readUsdPerMillion: amount("KV_READ_USD_PER_MILLION", env.KV_READ_USD_PER_MILLION, 0.5),
      usdPerPeriod: amount("BUDGET_USD_PER_PERIOD", env.BUDGET_USD_PER_PERIOD, Infinity),
      usdPerMonth: amount("BUDGET_USD_PER_MONTH", env.BUDGET_USD_PER_MONTH, Infinity),
    },
    delta: wholeNumber("DELTA", env.DELTA, 1, 255),
    functional: parseFlag("FUNCTIONAL", env.FUNCTIONAL),
    manifestTtlSeconds: wholeNumber(
      "MANIFEST_TTL_SECONDS",
      env.MANIFEST_TTL_SECONDS,
      MANIFEST_TTL_SECONDS_DEFAULT,
      86_400,
    ),
    subrequestsMax: wholeNumber("SUBREQUESTS_MAX", env.SUBREQUESTS_MAX, SUBREQUESTS_MAX_DEFAULT, 10_000_000),
    regionRequestsMax: wholeNumber("REGION_REQUESTS_MAX", env.REGION_REQUESTS_MAX, REGION_REQUESTS_MAX_DEFAULT, 10_000),
    bucketCredentials: parseBucketCredentials(env.BUCKET_CREDENTIALS),
    access: {
      privatePrefixes: parsePrefixes("PRIVATE_PREFIXES", env.PRIVATE_PREFIXES),
      publicPrefixes: parsePrefixes("PUBLIC_PREFIXES", env.PUBLIC_PREFIXES),
      readToken: parseSecret("READ_TOKEN", env.READ_TOKEN),
      signingKey: parseSecret("SIGNING_KEY", env.SIGNING_KEY),
    },
    adminToken: env.ADMIN_TOKEN || undefined,
    telemetryKey: parseSecret("TELEMETRY_KEY", env.TELEMETRY_KEY),
    peers: parsePeers(env.POP, env.PEERS, parseSecret("PEER_KEY", env.PEER_KEY)),
  };
}

function parseRegions(text: string | undefined): Region[] {
  let json: unknown;
  try {
    json = JSON.parse(text ?? "");
  } catch (error) {
    throw invalid("REGIONS", "is not JSON", error);
  }
  if (!Array.isArray(json) || json.length === 0) throw invalid("REGIONS", "is not a list of at least one region");
  const names = new Set<string>();
  return json.map((region: Partial<Region> | null) => {
    const { name, url, popUrl = url, private: isPrivate = false, awsRegion, egressUsdPerGb = 0 } = region ?? {};
    if (typeof name !== "string" || name === "" || names.has(name)) {
      throw invalid("REGIONS", `has a region without a name of its own: ${JSON.stringify(region)}`);
    }
    names.add(name);
    if (!isHttpUrl(url) || !isHttpUrl(popUrl)) throw invalid("REGIONS", `has no http(s) URL for region ${name}`);
    if (typeof isPrivate !== "boolean" || (awsRegion !== undefined && typeof awsRegion !== "string")) {
      throw invalid("REGIONS", `has a "private" or "awsRegion" of region ${name} that is none`);
    }
    if (typeof egressUsdPerGb !== "number" || !(egressUsdPerGb >= 0 && egressUsdPerGb < Infinity)) {
      throw invalid(
        "REGIONS",
        `has an "egressUsdPerGb" of region ${name} that is no price: a number such as 0.09 is expected`,
      );
    }
    const price = egressUsdPerGb > 0 ? { egressUsdPerGb } : {};
    return { name, url, popUrl, ...price, ...(isPrivate && { private: true, ...(awsRegion && { awsRegion }) }) };
  });
}

function parsePrefixes(name: string, text: string | undefined): string[] {
  let json: unknown;
  try {
    json = JSON.parse(text || "[]");
  } catch (error) {
    throw invalid(name, "is not JSON", error);
  }
  if (Array.isArray(json) && json.every((prefix) => typeof prefix === "string")) return json;
  throw invalid(name, "is not a list of key prefixes");
}

function parseSecret(name: string, secret: string | undefined): string | undefined {
  if (!secret) return undefined;
  if (secret.length >= SECRET_LENGTH_MIN) return secret;
  throw invalid(name, `has ${secret.length} characters: at least ${SECRET_LENGTH_MIN} are expected`);
}

/** `clairvoyant` has to be told the future; `backend` caches nothing, and leaves what is cached where it is. */
const NOT_FOR_POPS: ReadonlySet<string> = new Set(["clairvoyant", "backend"]);
const POLICIES = [...POLICY_NAMES.filter((name) => !NOT_FOR_POPS.has(name)), "off"];
const POLICY_DEFAULT = "adaptive";

function parsePolicy(name = POLICY_DEFAULT): string {
  if (POLICIES.includes(name)) return name;
  throw invalid("POLICY", `is ${JSON.stringify(name)}: ${POLICIES.join(", ")} are known`);
}

/** US dollars; what is left out or empty has its default. */
function amount(name: string, text: string | undefined, fallback: number): number {
  if (!text) return fallback;
  const value = Number(text);
  if (/^\d+(\.\d+)?$/.test(text) && Number.isFinite(value)) return value;
  throw invalid(name, `is ${JSON.stringify(text)}: an amount such as 5 or 0.005 is expected`);
}

function parseFlag(name: string, text = "false"): boolean {
  if (text === "true" || text === "false") return text === "true";
  throw invalid(name, `is ${JSON.stringify(text)}: "true" or "false" is expected`);
}

function wholeNumber(name: string, text: string | undefined, fallback: number, max: number): number {
  if (text === undefined) return fallback;
  const value = Number(text);
  if (/^\d+$/.test(text) && value <= max) return value;
  throw invalid(name, `is ${JSON.stringify(text)}: a whole number from 0 to ${max} is expected`);
}

function isHttpUrl(url: unknown): url is string {
  return typeof url === "string" && /^https?:\/\//.test(url) && URL.canParse(url);
}

function invalid(variable: string, problem: string, cause?: unknown): AgaroseError {
  return new AgaroseError("CONFIG_INVALID", `variable ${variable} ${problem} (wrangler.toml)`, { variable }, cause);
}
