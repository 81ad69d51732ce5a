/**
 * Where a PoP is. Cloudflare runs a Worker wherever a request or a Cron Trigger happens to arrive: what shall have a
 * place, such as the measurement of regions, runs in Durable Objects with a location hint.
 */
import * as v from "valibot";
import { parseVariables, type Variable } from "./variables.ts";
import { continentOf } from "./continents.ts";

/** Cloudflare's location hints (developers.cloudflare.com/durable-objects/reference/data-location, 2026). */
export const LOCATIONS = [
  "wnam",
  "enam",
  "sam",
  "weur",
  "eeur",
  "apac",
  "apac-ne",
  "apac-se",
  "oc",
  "afr",
  "me",
] as const;

/** One of Cloudflare's location hints. */
type PopLocation = (typeof LOCATIONS)[number];

/** The variable that says where the PoP is, as every Durable Object of the Worker reads it. */
export interface PlaceBinding {
  readonly LOCATION?: string;
}

const location: Variable<PopLocation | undefined> = {
  schema: v.pipe(
    v.optional(v.string(), ""),
    v.check(
      (text) => text === "" || (LOCATIONS as readonly string[]).includes(text),
      ({ input }) => `is ${JSON.stringify(input)}: ${LOCATIONS.join(", ")} are known`,
    ),
    v.transform((text) => (text === "" ? undefined : (text as PopLocation))),
  ),
  description:
    "Cloudflare's location hint for the PoP's Durable Objects, which run its periods. It counts when an object is " +
    "created and never afterwards.",
  type: `one of ${LOCATIONS.join(", ")}`,
};

/** The variables of this module. */
export const PLACE_VARIABLES = { LOCATION: location };

/** Checks LOCATION. Undefined: Cloudflare chooses. Throws CONFIG_INVALID. */
export function parseLocation(env: PlaceBinding): PopLocation | undefined {
  return parseVariables(PLACE_VARIABLES, env).location;
}

/** A call of an object that takes longer counts as failed: objects answer in milliseconds. */
export const OBJECT_DEADLINE_MS = 10_000;

/** A namespace of Durable Objects, in the part that is used here; this module also runs in Node. */
interface ObjectNamespace<Id, Stub> {
  idFromName(name: string): Id;
  get(id: Id, options?: { locationHint?: PopLocation }): Stub;
}

/**
 * Returns the stub of the object `name`, which Cloudflare creates at LOCATION; of one Worker everywhere, that of the
 * continent. A stub belongs to the invocation that asked for it.
 */
export function durableObject<Id, Stub>(namespace: ObjectNamespace<Id, Stub>, name: string, env: PlaceBinding): Stub {
  const locationHint = parseLocation(env);
  const continent = continentOf(env);
  const id = namespace.idFromName(continent === undefined ? name : `${continent}:${name}`);
  return namespace.get(id, locationHint === undefined ? {} : { locationHint });
}

/** Cloudflare's own answer to where a request of this code enters its network: lines of `name=value`. */
const TRACE_URL = "https://cloudflare.com/cdn-cgi/trace";
const TRACE_MS = 3_000;

/**
 * Resolves to the airport code of the data center that runs this code, such as `FRA`. Resolves to null where it cannot
 * be found out. `request.cf.colo` does not say it: that is where the request entered Cloudflare. Never rejects.
 */
export async function findColo(fetchTrace: typeof fetch = fetch): Promise<string | null> {
  try {
    const response = await fetchTrace(TRACE_URL, { signal: AbortSignal.timeout(TRACE_MS) });
    if (!response.ok) {
      await response.body?.cancel();
      return null;
    }
    return /^colo=([A-Z]{3})$/m.exec(await response.text())?.[1] ?? null;
  } catch {
    return null;
  }
}
