/**
 * Wrangler's configuration of all PoPs, made from the configuration of the command line. Pure.
 *
 * The settings of a configuration are rewritten each time. The rest of the file is kept: KV ids, tuned variables,
 * routes.
 */
import { AgaroseError } from "@agarose/core";
import { isRecord } from "@agarose/core/format";
import type { Config } from "@agarose/storage/config/config";
import { sharedVariables } from "../../lib/pop-variables.ts";
import { locationNear, suggestedPlaces } from "../deploy/place.ts";

type Pop = Config["pops"][number];
type Json = Readonly<Record<string, unknown>>;

/** The first line by which a file is known to be generated. */
export const GENERATED =
  "// Made by `agarose init --worker` from agarose.config.json: change that file and run it again.";

const REMARKS = `${GENERATED}
// It keeps what you change in \`vars\`, and what you add: routes, bindings. It does not keep comments.
// CACHE_BYTES is how much each PoP caches in KV; BUDGET_USD_… is what writing the cache may cost.
`;

const OBJECTS = { REQUEST_MONITOR: "RequestMonitor", POP_STATE: "PopState", PEER_STATE: "PeerState" };
const RATE_LIMIT_ID_FIRST = 7000;
/** The variables that are there to be tuned. */
const TUNED = {
  CACHE_BYTES: "1000000000",
  POLICY: "adaptive",
  BUDGET_USD_PER_PERIOD: "0.005",
  BUDGET_USD_PER_MONTH: "20",
  PRIVATE_PREFIXES: "[]",
  PUBLIC_PREFIXES: "[]",
};
const PEERS_OFF = "off";
/** Of the invocations whose own lines are kept. */
const LOGS_SHARE = 0.1;
/** One data set for all PoPs: each names itself in `index1`. */
const ANALYTICS = [{ binding: "ANALYTICS", dataset: "agarose" }];

interface WranglerConfigOptions {
  /** Path of the Worker's module, relative to the file. */
  readonly main: string;
  /** The file as it is; an empty object for none. */
  readonly previous: Json;
  /** One Worker for all continents, without a place. An existing one stays as it is. */
  readonly everywhere: boolean;
  /** Whether each PoP writes its totals to Workers Analytics Engine. A PoP that does already continues to. */
  readonly analytics: boolean;
  /** The location hints that the Worker knows. */
  readonly locations: readonly string[];
  /** Whether the installed Wrangler can keep query strings out of logs. */
  readonly canRedact: boolean;
}

/**
 * Returns the text of wrangler.jsonc, with one environment per PoP.
 *
 * @throws CONFIG_INVALID for a configuration without PoPs at Cloudflare, and for a PoP without a place.
 */
export function wranglerConfig(config: Config, options: WranglerConfigOptions): string {
  const { main, previous, analytics } = options;
  const pops = config.pops.filter(({ node }) => !node);
  if (pops.length === 0) {
    throw new AgaroseError("CONFIG_INVALID", 'no PoP to write: add "pops": [{ "name", "url", "placement" }]');
  }
  const environments = recordOf(previous["env"]);
  const alone = Object.keys(environments).filter((name) => varsOf(environments, name)["PEERS"] === PEERS_OFF);
  const cooperating = { ...config, pops: config.pops.filter(({ name }) => !alone.includes(name)) };
  const limitIds = freeLimitIds(environments);
  const { $schema = "node_modules/wrangler/config-schema.json", name = "agarose", ...kept } = previous;
  const file = {
    $schema,
    name,
    main,
    compatibility_date: "2026-07-01",
    compatibility_flags: ["global_fetch_strictly_public", "enable_request_signal"],
    // Each line and each span is billed. Left to itself, Cloudflare writes a line for every request and every call of a
    // Durable Object. Lines and spans hold the addresses of requests: whoever reads them has the signatures of signed
    // ones, unless query strings are omitted.
    observability: {
      enabled: true,
      ...(options.canRedact && { redact_query_string: true }),
      head_sampling_rate: LOGS_SHARE,
      logs: { enabled: true, invocation_logs: false, head_sampling_rate: LOGS_SHARE },
      traces: { enabled: false },
    },
    // Errors then name lines of the sources. Only Cloudflare gets the maps.
    upload_source_maps: true,
    triggers: { crons: ["* * * * *"] },
    migrations: [
      { tag: "v1", new_sqlite_classes: ["RequestMonitor", "PopState"] },
      { tag: "v2", new_sqlite_classes: ["PeerState"] },
    ],
    ...without(kept, ["main", "compatibility_date", "compatibility_flags", "migrations", "env"]),
    env: Object.fromEntries(
      pops.map((pop) => {
        const own = recordOf(environments[pop.name]);
        const limitId = limitIds.next().value as string;
        const placement = isEverywhere(pop, options) ? undefined : { region: pop.placement };
        return [
          pop.name,
          environmentOf(pop, config.regions, own, { limitId, placement, analytics, vars: varsFor(pop) }),
        ];
      }),
    ),
  };
  return `${REMARKS}${JSON.stringify(file, undefined, 2)}\n`;

  function varsFor(pop: Pop): Json {
    if (isEverywhere(pop, options)) {
      checkAlone(pops);
      const { PEERS: _peers, ...shared } = sharedVariables(config, { hasBindings: true });
      const own = without(varsOf(environments, pop.name), ["LOCATION"]);
      return { ...TUNED, ...own, POP: pop.name, EVERYWHERE: "true", ...shared, PEERS: PEERS_OFF };
    }
    const own = varsOf(environments, pop.name);
    const shared = sharedVariables(cooperating, { hasBindings: true });
    const LOCATION = locationOf(pop, config, options.locations);
    const vars = { ...TUNED, ...own, POP: pop.name, LOCATION, ...shared };
    if (alone.includes(pop.name)) return { ...vars, PEERS: PEERS_OFF };
    return shared["PEERS"] === undefined ? without(vars, ["PEERS"]) : vars;
  }
}

/** Names of the environments that the configuration no longer has. */
export function leftOut(config: Config, previous: Json): string[] {
  const names = new Set(config.pops.filter(({ node }) => !node).map(({ name }) => name));
  return Object.keys(recordOf(previous["env"])).filter((name) => !names.has(name));
}

function isEverywhere({ name }: Pop, { everywhere, previous }: WranglerConfigOptions): boolean {
  return everywhere || varsOf(recordOf(previous["env"]), name)["EVERYWHERE"] === "true";
}

function checkAlone(pops: readonly Pop[]): void {
  if (pops.length === 1) return;
  const names = pops.map(({ name }) => name).join(", ");
  throw new AgaroseError("CONFIG_INVALID", `one Worker everywhere is one PoP, and \`pops\` has ${names}: keep one`);
}

function environmentOf(
  pop: Pop,
  regions: Config["regions"],
  own: Json,
  made: { limitId: string; placement: Json | undefined; analytics: boolean; vars: Json },
): Json {
  const bound = regions.flatMap(({ binding, bucket }) => (binding ? [{ binding, bucket_name: bucket }] : []));
  const names = new Set(bound.map(({ binding }) => binding));
  const others = listOf(own["r2_buckets"]).filter(({ binding }) => !names.has(String(binding)));
  const { kv_namespaces, ratelimits, r2_buckets: _buckets, vars: _vars, durable_objects: _objects, ...kept } = own;
  const { SUBREQUESTS_MAX } = made.vars;
  return {
    name: `agarose-${pop.name}`,
    ...kept,
    placement: made.placement,
    version_metadata: kept["version_metadata"] ?? { binding: "VERSION" },
    // Without an id: Wrangler makes a namespace for each Worker at its first deployment.
    kv_namespaces: kv_namespaces ?? [{ binding: "CHUNKS" }],
    ratelimits: ratelimits ?? [{ name: "MISS_LIMIT", namespace_id: made.limitId, simple: { limit: 60, period: 60 } }],
    durable_objects: {
      bindings: Object.entries(OBJECTS).map(([name, class_name]) => ({ name, class_name })),
    },
    ...(made.analytics && { analytics_engine_datasets: ANALYTICS }),
    ...(bound.length + others.length > 0 && { r2_buckets: [...bound, ...others] }),
    ...(SUBREQUESTS_MAX !== undefined && {
      limits: { ...recordOf(kept["limits"]), subrequests: Number(SUBREQUESTS_MAX) },
    }),
    vars: made.vars,
  };
}

function locationOf(pop: Pop, config: Config, known: readonly string[]): string {
  const invalid = (problem: string): AgaroseError =>
    new AgaroseError("CONFIG_INVALID", `\`pops\`: ${pop.name} ${problem}`, { pop: pop.name });
  if (pop.placement === undefined) {
    const sites = config.regions.map(({ endpoint, url }) => `${endpoint}/ ${url}/`).join(" ");
    const near = suggestedPlaces(sites).map(({ region }) => region);
    throw invalid(
      `has no placement, so Cloudflare would run it everywhere: add "placement": "${near[0] ?? "aws:eu-central-1"}"` +
        `${near.length > 1 ? `, or ${near.slice(1).join(", ")}` : ""}; or "node": true for a PoP on your own machine`,
    );
  }
  const location = pop.location ?? locationNear(pop.placement);
  if (location === undefined) {
    throw invalid(`has the placement ${pop.placement}: add "location", one of ${known.join(", ")}`);
  }
  if (known.includes(location)) return location;
  throw invalid(`has the location ${JSON.stringify(location)}: ${known.join(", ")} are known`);
}

/** Ids of rate limits that no environment has: they are unique in an account. */
function* freeLimitIds(environments: Json): Generator<string, never> {
  const taken = new Set(
    Object.values(environments).flatMap((one) =>
      listOf(recordOf(one)["ratelimits"]).map(({ namespace_id: id }) => String(id)),
    ),
  );
  for (let id = RATE_LIMIT_ID_FIRST; ; id += 1) if (!taken.has(String(id))) yield String(id);
}

function varsOf(environments: Json, pop: string): Json {
  return recordOf(recordOf(environments[pop])["vars"]);
}

function recordOf(value: unknown): Json {
  return isRecord(value) ? value : {};
}

function listOf(value: unknown): Json[] {
  return Array.isArray(value) ? value.map(recordOf) : [];
}

function without(record: Json, names: readonly string[]): Json {
  return Object.fromEntries(Object.entries(record).filter(([name]) => !names.includes(name)));
}
