/** How a PoP reads, as its variables say; with the settings of the regions and peers that it reads from. */
import { AgaroseError } from "@agarose/core";
import { rawPublicKey } from "@agarose/core/format";
import * as v from "valibot";
import { parsePopSettings, type PopSettings } from "../peers/peer-settings.ts";
import { flag, json, parseVariables, wholeNumber, type Parsed } from "../runtime/variables.ts";
import { REGION_VARIABLES, type RegionSettings } from "../regions/region-settings.ts";

/** Workers Paid; Free allows 50. */
const SUBREQUESTS_MAX_DEFAULT = 10_000;
const MANIFEST_TTL_SECONDS_DEFAULT = 60;
/** An isolate at Cloudflare has 128 MB, which reads share. */
const MEMORY_BYTES_DEFAULT = 16 * 1024 * 1024;

/** The variables of this room. */
export const READ_VARIABLES = {
  DELTA: wholeNumber("How many requests beyond k a read makes, at the edge and as advice to clients.", 1, 255),
  MANIFEST_TTL_SECONDS: wholeNumber(
    "How many seconds a key may keep naming an old version.",
    MANIFEST_TTL_SECONDS_DEFAULT,
    86_400,
  ),
  MEMORY_BYTES: wholeNumber(
    "How many bytes of hot chunks an isolate keeps in memory. More than the default needs your own PoP.",
    MEMORY_BYTES_DEFAULT,
    Number.MAX_SAFE_INTEGER,
  ),
  ORIGIN: json(
    "Base URL of plain objects that `/o/` serves for keys of which the regions know nothing. Its answers need a length " +
      "and a strong ETag. Anyone may read it.",
    "JSON text, or null",
    v.pipe(
      v.nullable(v.pipe(v.string(), v.regex(/^https?:\/\/[^?#]+$/, "is not an HTTP URL"))),
      v.transform((url) => url ?? undefined),
    ),
    { fallback: "null" },
  ),
  PUBLISHER_KEYS: json(
    "Public keys of the publishers whose manifests the PoP uses. Required, unless `UNSIGNED` is true.",
    'JSON array of at most 8 texts, each "ed25519:" and base64 of 32 bytes',
    v.pipe(
      v.array(v.pipe(v.string(), v.check(isPublicKey, "has a key that is not ed25519: and base64"))),
      v.maxLength(8),
    ),
    { fallback: "[]" },
  ),
  UNSIGNED: flag("Whether the PoP uses every manifest, signed or not. It then has no `PUBLISHER_KEYS`.", false),
  SUBREQUESTS_MAX: wholeNumber(
    "How many subrequests one invocation may make: 50 on Workers Free, and 10000 on Paid. If you need more there, raise " +
      "this, and `agarose init --worker` writes the same to `limits.subrequests`.",
    SUBREQUESTS_MAX_DEFAULT,
    10_000_000,
  ),
  LOG_TRACES: flag(
    "Whether the log has a line for each request of a trace: every read of a service worker, and what has a sampled " +
      "`traceparent`.",
    false,
  ),
};

/** The settings that an isolate reads by. Without `publisherKeys`, it uses every manifest. */
export interface ReadSettings extends RegionSettings, PopSettings, Omit<Parsed<typeof READ_VARIABLES>, "unsigned"> {}

/** Checks the variables of this room, of regions and of peers. Throws CONFIG_INVALID. */
export function parseReadSettings(env: object): ReadSettings {
  const { unsigned, ...own } = parseVariables(READ_VARIABLES, env);
  const settings = { ...parsePopSettings(env), ...parseVariables(REGION_VARIABLES, env), ...own };
  const { length } = settings.publisherKeys;
  if (unsigned === length > 0) {
    const found = `variable PUBLISHER_KEYS has ${length} keys and UNSIGNED is ${unsigned}`;
    throw new AgaroseError(
      "CONFIG_INVALID",
      `${found}: make a key with \`agarose keys new\`, which \`agarose deploy\` writes here, or set only UNSIGNED ` +
        "(wrangler.toml)",
      { variable: "PUBLISHER_KEYS" },
    );
  }
  return settings;
}

function isPublicKey(text: string): boolean {
  try {
    return rawPublicKey(text).length === 32;
  } catch {
    return false;
  }
}
