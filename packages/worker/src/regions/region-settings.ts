/** The buckets that a PoP reads from, as its variables name them. */
import * as v from "valibot";
import { json, type Parsed } from "../runtime/variables.ts";

/** One region: a bucket and how to read it. */
export interface ConfiguredRegion {
  readonly name: string;
  /** Public base URL of the bucket, which plans give to clients. */
  readonly url: string;
  /** Base URL that the PoP itself reads from. Default: `url`. */
  readonly popUrl: string;
  /** Name of the R2 binding that the PoP reads through instead of `popUrl`. */
  readonly binding?: string;
  /** Whether reads must be signed with the credentials that BUCKET_CREDENTIALS has for the region. */
  readonly private?: boolean;
  /** The AWS region that requests are signed for. */
  readonly awsRegion?: string;
  /** The provider's price of reading a GB in US dollars: the cache spares dear regions. Default: 0. */
  readonly egressUsdPerGb?: number;
}

const httpUrl = v.pipe(
  v.string(),
  v.check((url) => /^https?:\/\//.test(url) && URL.canParse(url), "must be an http or https URL"),
);

const region = v.pipe(
  v.object({
    name: v.pipe(v.string(), v.nonEmpty("must not be empty")),
    url: httpUrl,
    popUrl: v.optional(httpUrl),
    binding: v.optional(v.pipe(v.string(), v.nonEmpty("must not be empty"))),
    private: v.optional(v.boolean()),
    awsRegion: v.optional(v.string()),
    egressUsdPerGb: v.optional(
      v.pipe(
        v.number(),
        v.check((price) => price >= 0 && Number.isFinite(price), "must be a price such as 0.09"),
      ),
    ),
  }),
  v.transform((given): ConfiguredRegion => {
    const { name, url, popUrl = url, binding, awsRegion, egressUsdPerGb = 0 } = given;
    return {
      name,
      url,
      popUrl,
      ...(binding ? { binding } : {}),
      ...(egressUsdPerGb > 0 ? { egressUsdPerGb } : {}),
      ...(given.private ? { private: true, ...(awsRegion ? { awsRegion } : {}) } : {}),
    };
  }),
);

const regions = v.pipe(
  v.array(region),
  v.minLength(1, "must name at least one region"),
  v.check((all) => new Set(all.map(({ name }) => name)).size === all.length, "names a region twice"),
);

const text = v.pipe(v.string(), v.nonEmpty("must not be empty"));
const keyPair = v.object({ accessKeyId: text, secretAccessKey: text });
/** Keys of one bucket, or of all buckets. */
export type BucketCredentials = Readonly<v.InferOutput<typeof keyPair>>;

/** The variables of this room. */
export const REGION_VARIABLES = {
  REGIONS: json(
    "The buckets: `name` and public base URL `url` of each. Further fields are those of [Regions](#regions).",
    "JSON list of regions",
    regions,
  ),
  BUCKET_CREDENTIALS: json(
    "The keys of private buckets, by name of the region or `*`: `accessKeyId` and `secretAccessKey`.",
    "JSON object",
    v.record(v.string(), keyPair),
    { fallback: "{}", secret: true },
  ),
};

/** The settings of this room. Credentials are by name of the region, or `*` for all others. */
export type RegionSettings = Pick<Parsed<typeof REGION_VARIABLES>, "regions"> &
  Partial<Parsed<typeof REGION_VARIABLES>>;
