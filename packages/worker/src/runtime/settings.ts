/**
 * All variables of the Worker and the settings that they make. Each room declares and checks its own variables; this
 * module only joins them. The reference page of the Worker's configuration is generated from `VARIABLES`, so this
 * module runs in Node, too.
 */
import { AgaroseError } from "@agarose/core";
import { CACHE_VARIABLES, parseCacheSettings, type CacheSettings } from "../cache/cache-settings.ts";
import { POP_VARIABLES } from "../peers/peer-settings.ts";
import { EVERYWHERE_VARIABLES } from "./continents.ts";
import { REGION_VARIABLES } from "../regions/region-settings.ts";
import { PLACE_VARIABLES } from "./durable-objects.ts";
import { parseReadSettings, READ_VARIABLES, type ReadSettings } from "../read/read-settings.ts";
import { CANDIDATE_VARIABLES } from "../popularity/fill-candidates.ts";
import { ACCESS_VARIABLES, parseAccessSettings, type AccessSettings } from "../http/access.ts";
import { SITE_VARIABLES } from "../http/site.ts";
import { parseVariables, type Parsed } from "./variables.ts";

/** Every variable and secret of the Worker, in the order of the reference page. */
export const VARIABLES = {
  ...POP_VARIABLES,
  ...PLACE_VARIABLES,
  ...EVERYWHERE_VARIABLES,
  ...REGION_VARIABLES,
  ...READ_VARIABLES,
  ...CACHE_VARIABLES,
  ...CANDIDATE_VARIABLES,
  ...ACCESS_VARIABLES,
  ...SITE_VARIABLES,
};

/** Variables that no folder checks by itself. */
const OTHERS = { ...EVERYWHERE_VARIABLES, ...CANDIDATE_VARIABLES, ...PLACE_VARIABLES, ...SITE_VARIABLES };

/** The checked settings of one PoP. */
export interface Settings extends ReadSettings, CacheSettings, Parsed<typeof OTHERS> {
  readonly access: AccessSettings;
}

/** Checks all variables of `env`. Throws CONFIG_INVALID, which names the first wrong one. */
export function parseSettings(env: object): Settings {
  const read = parseReadSettings(env);
  const others = parseVariables(OTHERS, env);
  if (others.everywhere && read.peers) {
    throw new AgaroseError(
      "CONFIG_INVALID",
      'variable PEERS names PoPs, and EVERYWHERE = "true" has none: remove one',
      { variable: "PEERS" },
    );
  }
  return { ...read, ...others, ...parseCacheSettings(env), access: parseAccessSettings(env) };
}

const known = new WeakMap<object, Settings>();

/** `parseSettings`, once per isolate. */
export function settingsOf(env: object): Settings {
  let settings = known.get(env);
  if (!settings) known.set(env, (settings = parseSettings(env)));
  return settings;
}
