/**
 * Whether a PoP has a place, and which one its buckets suggest. Pure.
 *
 * Cloudflare runs a Worker in every data center. A placement pins its fetch handler near a cloud region, and a location
 * hint its Durable Objects (developers.cloudflare.com/workers/configuration/placement, 2026).
 */

/** A place as wrangler.toml says it. */
export interface Place {
  /** `placement.region`. */
  readonly region: string;
  /** The variable LOCATION. */
  readonly location: string;
}

/** The fields of a PoP's environment that determine its place. */
export interface PlacedEnvironment {
  readonly name: string;
  /** The cloud region or host that the Worker is pinned to. Undefined: it runs everywhere. */
  readonly placement?: string | undefined;
  readonly vars: Readonly<Record<string, unknown>>;
}

/** Location hints by the beginning of an AWS region's name; the first that fits counts. */
const HINTS: readonly (readonly [prefix: string, location: string])[] = [
  ["us-west-", "wnam"],
  ["us-", "enam"],
  ["ca-west-", "wnam"],
  ["ca-", "enam"],
  ["mx-", "enam"],
  ["sa-", "sam"],
  ["eu-", "weur"],
  ["af-", "afr"],
  ["me-", "me"],
  ["il-", "me"],
  ["ap-southeast-2", "oc"],
  ["ap-southeast-4", "oc"],
  ["ap-southeast-6", "oc"],
  ["ap-", "apac"],
];

/** Returns what a PoP lacks to be in a place, as a sentence that says what to write, or undefined. */
export function missingPlace({ name, placement, vars }: PlacedEnvironment): string | undefined {
  if (vars["EVERYWHERE"] === "true") {
    return placement === undefined && !vars["LOCATION"]
      ? undefined
      : `has EVERYWHERE = "true" in [env.${name}.vars] and a placement or LOCATION: remove one`;
  }
  const hasLocation = typeof vars["LOCATION"] === "string" && vars["LOCATION"] !== "";
  if (placement !== undefined && hasLocation) return undefined;
  const missing = [
    ...(placement === undefined ? [`placement in [env.${name}]`] : []),
    ...(hasLocation ? [] : [`LOCATION in [env.${name}.vars]`]),
  ].join(" and no ");
  const places = suggestedPlaces(vars["REGIONS"]).map(
    ({ region, location }) => `placement = { region = "${region}" } with LOCATION = "${location}"`,
  );
  const example = places.length > 0 ? places.join(", or ") : 'placement = { region = "aws:eu-central-1" }';
  return `has no ${missing}: Cloudflare would run this PoP everywhere. Write ${example}`;
}

/** Returns the places near the buckets of REGIONS that say where they are, in their order. */
export function suggestedPlaces(regions: unknown): Place[] {
  const names = String(regions).matchAll(/[./-]([a-z]{2}-[a-z]+-\d)[./]|"awsRegion":\s*"([a-z]{2}-[a-z]+-\d)"/g);
  const unique = new Set([...names].map(([, ofUrl, ofField]) => ofUrl ?? ofField!));
  return [...unique].flatMap((name) => {
    const region = `aws:${name}`;
    const location = locationNear(region);
    return location === undefined ? [] : [{ region, location }];
  });
}

/** Returns the location hint near a placement of AWS such as `aws:eu-central-1`; undefined for any other. */
export function locationNear(placement: string): string | undefined {
  return HINTS.find(([prefix]) => placement.startsWith(`aws:${prefix}`))?.[1];
}
