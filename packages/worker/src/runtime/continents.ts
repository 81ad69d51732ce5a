/**
 * One Worker everywhere: a deployment without placement is one PoP per continent. Cloudflare runs it where a request
 * enters, and the state is that of the continent: its Durable Objects, its part of KV, its periods.
 *
 * An isolate lives in one data center, so the first request that says its continent decides for all of them.
 */
import { isRecord } from "@agarose/core/format";
import { flag, parseVariables } from "./variables.ts";
import type { ValueStore } from "./storage-ports.ts";

/** Where the Durable Objects of each continent are created. */
const HINTS = {
  AF: "afr",
  AN: "oc",
  AS: "apac",
  EU: "weur",
  NA: "enam",
  OC: "oc",
  SA: "sam",
} as const;

/** A continent as `request.cf.continent` names it. */
export type Continent = keyof typeof HINTS;

const CONTINENTS = Object.keys(HINTS) as readonly Continent[];

/** Where a request comes from that does not say it. */
const CONTINENT_DEFAULT: Continent = "NA";

/** The differences between continents. */
interface EverywhereBinding {
  readonly EVERYWHERE?: string;
  readonly CHUNKS: ValueStore;
}

/** The variables of this module. */
export const EVERYWHERE_VARIABLES = {
  EVERYWHERE: flag(
    "Whether this one Worker serves all continents, with a state for each, and has neither place nor peers.",
    false,
  ),
};

/** Checks EVERYWHERE. Throws CONFIG_INVALID. */
export function isEverywhere(env: object): boolean {
  return parseVariables(EVERYWHERE_VARIABLES, env).everywhere;
}

const continents = new WeakMap<object, { readonly continent: Continent; readonly whole: object }>();
/** By the environment that Cloudflare gives, one of each continent: memory is kept by their identity. */
const environments = new WeakMap<object, Map<Continent, object>>();

/** Returns the continent of an environment of `forContinent`, and undefined for any other. */
export function continentOf(env: object): Continent | undefined {
  return continents.get(env)?.continent;
}

/** Returns `env` as that of one continent: always the same object. */
export function forContinent<E extends EverywhereBinding>(env: E, continent: Continent): E {
  let known = environments.get(env);
  if (!known) environments.set(env, (known = new Map()));
  const made = known.get(continent);
  if (made) return made as E;
  const own = { ...env, LOCATION: HINTS[continent], CHUNKS: prefixed(env.CHUNKS, `${continent}:`) };
  continents.set(own, { continent, whole: env });
  known.set(continent, own);
  return own;
}

/** Returns the environment of each continent where `env` is one of them or of all, and otherwise `env` alone. */
export function everyContinent<E extends EverywhereBinding>(env: E): readonly E[] {
  if (env.EVERYWHERE !== "true") return [env];
  const whole = (continents.get(env)?.whole ?? env) as E;
  return CONTINENTS.map((continent) => forContinent(whole, continent));
}

const homes = new WeakMap<object, Continent>();

/** Returns the environment of this isolate's continent, as the first `request` that says it decides. */
export function forEntry<E extends EverywhereBinding>(env: E, request: { readonly cf?: unknown }): E {
  if (env.EVERYWHERE !== "true") return env;
  const home = homes.get(env);
  if (home) return forContinent(env, home);
  const said = isRecord(request.cf) ? request.cf["continent"] : undefined;
  const continent = CONTINENTS.find((one) => one === said);
  if (continent) homes.set(env, continent);
  return forContinent(env, continent ?? CONTINENT_DEFAULT);
}

/** The part of the store whose names begin with `prefix`. */
function prefixed(kv: ValueStore, prefix: string): ValueStore {
  return {
    get: ((name: string, ...type: ["arrayBuffer"]) => kv.get(prefix + name, ...type)) as ValueStore["get"],
    put: (name, value) => kv.put(prefix + name, value),
    delete: (name) => kv.delete(prefix + name),
  };
}
