/**
 * The configuration file of the command line: regions, code, promises, PoPs. Never credentials: those come from the
 * environment or from AWS profiles (the SDK's default chain).
 */
import { readFile } from "node:fs/promises";
import * as v from "valibot";
import { AgaroseError, checkCode, STRIPE_BYTES_DEFAULT } from "@agarose/core";

export const CONFIG_PATH_DEFAULT = "agarose.json";

const httpUrl = v.pipe(
  v.string(),
  v.url("is not a URL"),
  v.regex(/^https?:\/\//, "is not an http or https URL"),
  v.transform((url) => url.replace(/\/+$/, "")),
);
const name = v.pipe(
  v.string(),
  v.regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/, "is not a name of letters, digits, . _ -"),
);
const count = v.pipe(v.number(), v.integer("is not a whole number"), v.minValue(0, "is negative"));

const regionSchema = v.pipe(
  v.strictObject({
    /** Stands in manifests: it must not change while objects are stored under it. */
    name,
    /** Failure domain above regions. */
    provider: name,
    endpoint: httpUrl,
    bucket: v.pipe(v.string(), v.regex(/^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/, "is not a bucket name")),
    /** Region that requests are signed for. */
    awsRegion: v.optional(v.pipe(v.string(), v.minLength(1, "is empty")), "us-east-1"),
    /** Base URL that anyone can read objects below; default `endpoint/bucket`. */
    url: v.optional(httpUrl),
    /** Whether reads must be signed: clients then read by what their PoP signs. */
    private: v.optional(v.boolean()),
  }),
  v.transform((region) => ({ ...region, url: region.url ?? `${region.endpoint}/${region.bucket}` })),
);

const configSchema = v.strictObject({
  $schema: v.optional(v.string()),
  regions: v.pipe(
    v.array(regionSchema),
    v.minLength(1, "is empty: at least 1 region is needed"),
    v.check((all) => new Set(all.map((region) => region.name)).size === all.length, "names a region twice"),
  ),
  code: v.strictObject({ k: count, m: count }),
  stripeBytes: v.optional(count, STRIPE_BYTES_DEFAULT),
  /** How many regions and providers may be lost at once with every object still readable. */
  survive: v.optional(v.strictObject({ regions: count, providers: count }), { regions: 1, providers: 0 }),
  pops: v.optional(v.array(v.strictObject({ name, url: httpUrl })), []),
  /** Which AWS profile to take credentials from, instead of the SDK's default chain. */
  aws: v.optional(v.strictObject({ profile: v.string(), credentialsFile: v.optional(v.string()) })),
});

export type Config = v.InferOutput<typeof configSchema>;
export type Region = Config["regions"][number];

/** Reads and checks the file at `path`. Throws CONFIG_INVALID naming the field, or CODE_INVALID. */
export async function loadConfig(path: string): Promise<Config> {
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (error) {
    throw new AgaroseError(
      "CONFIG_INVALID",
      `${path} cannot be read (${(error as NodeJS.ErrnoException).code}): name the configuration with --config PATH`,
      { path },
      error,
    );
  }
  return parseConfig(text, path);
}

/** `loadConfig` for text that is read already; `path` is for messages. */
export function parseConfig(text: string, path: string): Config {
  let json: unknown;
  try {
    // Some editors put a byte order mark first.
    json = JSON.parse(text.replace(/^\uFEFF/, ""));
  } catch (error) {
    throw new AgaroseError("CONFIG_INVALID", `${path} is not JSON: ${(error as Error).message}`, { path }, error);
  }
  const result = v.safeParse(configSchema, json);
  if (!result.success) {
    const problems = result.issues.map((issue) => ({ field: v.getDotPath(issue) ?? "", problem: problemOf(issue) }));
    const first = problems[0]!;
    const more = problems.length > 1 ? ` (and ${problems.length - 1} more)` : "";
    const what = first.field === "" ? path : `${path}: \`${first.field}\``;
    throw new AgaroseError("CONFIG_INVALID", `${what} ${first.problem}${more}`, { path, problems });
  }
  checkCode({ ...result.output.code, stripeBytes: result.output.stripeBytes });
  return result.output;
}

/** Valibot's own words for the commonest mistakes ("Expected never but received …") are for programmers. */
function problemOf({ kind, type, expected, received, message }: v.BaseIssue<unknown>): string {
  if (kind !== "schema") return message;
  if (expected === "never") return "is no field of this file: check its spelling, or remove it";
  if (received === "undefined") return "is missing";
  return `must be of type ${type.replace("strict_", "")}, and is ${received}`;
}
