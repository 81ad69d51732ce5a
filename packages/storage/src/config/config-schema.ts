/** The fields of the configuration file, each with the one description from which its reference page is generated. */
import * as v from "valibot";
import { isLocal, STRIPE_BYTES_DEFAULT, DEVELOPMENT_KEY } from "@agarose/core/format";

/** A schema, with what the reference page tells of its field. */
function about<S extends v.GenericSchema>(description: string, schema: S): S {
  // A description changes neither what comes in nor what comes out.
  return v.pipe(schema, v.description(description)) as unknown as S;
}

/** The same for a field that may be absent. */
function optional<S extends v.GenericSchema, const D extends v.Default<S, undefined> = undefined>(
  description: string,
  schema: S,
  fallback?: D,
): v.OptionalSchema<S, D> {
  return v.optional(about(description, schema), fallback as D);
}

/** Rules for the keys of different prefixes. */
function rules<S extends v.GenericSchema<unknown, { readonly prefix: string }>>(rule: S) {
  return v.pipe(
    v.array(rule),
    v.check((all) => new Set(all.map(({ prefix }) => prefix)).size === all.length, "names a prefix twice"),
  );
}

/** Whether one of these alternatives is given, and no more. */
function isOnlyOne(...ways: readonly unknown[]): boolean {
  return ways.filter((way) => way !== undefined).length === 1;
}

const httpUrl = v.pipe(
  v.string(),
  v.title("URL"),
  v.url("is not a URL such as https://example.com"),
  v.regex(/^https?:\/\//, "is not an http or https URL"),
  v.transform((url) => url.replace(/\/+$/, "")),
);
const name = v.pipe(
  v.string(),
  v.title("name"),
  v.regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/, "is not a name of letters, digits, . _ -"),
);
const text = v.pipe(v.string(), v.minLength(1, "is empty"));
const count = v.pipe(
  v.number(),
  v.title("whole number"),
  v.integer("is not a whole number"),
  v.minValue(0, "is negative"),
);
const HOUR_MS = 3_600_000;
/** Milliseconds, written as whole hours or days. */
const time = v.pipe(
  v.string(),
  v.title("duration"),
  v.regex(/^\d{1,6}[hd]$/, "must be hours or days, such as 12h or 30d"),
  v.transform((written) => Number.parseInt(written, 10) * (written.endsWith("d") ? 24 * HOUR_MS : HOUR_MS)),
);
const amount = v.pipe(v.number(), v.title("number"), v.minValue(0, "is negative"));
const program = v.pipe(v.array(text), v.minLength(1, "is empty: name a program"));
const variable = v.pipe(
  v.string(),
  v.title("variable name"),
  v.regex(/^[A-Za-z_][A-Za-z0-9_]*$/, "is not the name of an environment variable: secrets do not belong in this file"),
);

const credentials = v.pipe(
  v.strictObject({
    profile: optional(
      "AWS profile. Profiles that assume a role, use SSO or run a `credential_process` work too.",
      text,
    ),
    credentialsFile: optional(
      "File that holds the profile, relative to this file's folder. The AWS default is `~/.aws/credentials`.",
      text,
    ),
    env: optional(
      "Names of the environment variables that hold a key pair.",
      v.strictObject({
        accessKeyId: about("Variable that holds the access key id.", variable),
        secretAccessKey: about("Variable that holds the secret access key.", variable),
        sessionToken: optional("Variable that holds the session token, if any.", variable),
      }),
    ),
    command: optional(
      "Program and arguments, run without a shell. It prints the JSON of an AWS `credential_process`: " +
        '`{"Version": 1, "AccessKeyId", "SecretAccessKey", "SessionToken"?, "Expiration"?}`.',
      program,
    ),
  }),
  v.check(
    ({ profile, env, command }) => isOnlyOne(profile, env, command),
    "needs exactly one of profile, env and command",
  ),
  v.check(
    ({ profile, credentialsFile }) => credentialsFile === undefined || profile !== undefined,
    "has a credentialsFile without a profile",
  ),
);

const signing = v.pipe(
  v.strictObject({
    keyFile: optional(
      "File that holds the private key: PKCS#8 PEM, or base64 of 32 bytes. Relative to this file's folder.",
      text,
    ),
    environment: optional("Variable that holds the private key.", variable),
    command: optional(
      "Program and arguments, run without a shell. It gets the bytes to sign on stdin and prints the base64 of the " +
        "signature by the first of `publicKeys`.",
      program,
    ),
  }),
  v.check(
    ({ keyFile, environment, command }) => isOnlyOne(keyFile, environment, command),
    "needs exactly one of keyFile, environment and command",
  ),
);

const secretSource = v.pipe(
  v.strictObject({
    file: optional("File that holds the secret. Relative to this file's folder.", text),
    environment: optional("Variable that holds the secret.", variable),
    command: optional("Program and arguments, run without a shell, that print the secret.", program),
  }),
  v.check(
    ({ file, environment, command }) => isOnlyOne(file, environment, command),
    "needs exactly one of file, environment and command",
  ),
);

const publicKey = v.pipe(
  v.string(),
  v.title("public key"),
  v.regex(/^ed25519:[A-Za-z0-9+/]{43}=$/, "is not a public key: `agarose keys new` makes one"),
);

const fileName = v.pipe(v.string(), v.title("file name"), v.regex(/^[^/]+$/, "is not the name of a file"));

const bucketName = v.pipe(
  v.string(),
  v.title("bucket name"),
  v.regex(
    /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/,
    "is not a bucket name: 3 to 63 lower-case letters, digits, dots and hyphens",
  ),
);

const region = v.pipe(
  v.strictObject({
    name: about(
      "Name of the region in manifests. `agarose migrate` changes it while objects are stored under it.",
      name,
    ),
    formerly: optional(
      "Name that the region had before, which manifests may still have. `agarose migrate` writes it.",
      name,
    ),
    provider: about("Failure domain above regions, usually the cloud provider.", name),
    endpoint: about("S3 endpoint that the command line writes and reads through.", httpUrl),
    bucket: about("Bucket that holds this region's chunks and manifests.", bucketName),
    awsRegion: optional("Region name that requests are signed for.", text, "us-east-1"),
    url: optional("Base URL for reads without credentials. The default is `endpoint/bucket`.", httpUrl),
    private: optional(
      "Whether the bucket refuses unsigned reads. Clients then read with URLs that their PoP signs.",
      v.boolean(),
    ),
    popUrl: optional(
      "Base URL that PoPs read from, such as an address inside the provider's network. Default: `url`.",
      httpUrl,
    ),
    binding: optional("R2 binding that PoPs at Cloudflare read `bucket` through, without HTTP requests.", variable),
    egressUsdPerGb: optional(
      "Price of reading a GB in US dollars. PoPs cache more chunks of expensive regions, and fill from cheap ones.",
      amount,
    ),
    storageUsdPerGbMonth: optional("Price of storing a GB for a month in US dollars, for `agarose du --cost`.", amount),
    latencyMs: optional(
      "Milliseconds to the first byte, as your users see it. `auto` codes and placement use it.",
      amount,
    ),
    drain: optional(
      "Whether the region is being emptied: nothing new is put in it but manifests. `recode` moves the rest.",
      v.boolean(),
    ),
    checksums: optional(
      "Whether the store accepts the checksum headers of current SDKs, by default yes; `agarose doctor` checks it. " +
        "With `false`, uploads carry Content-MD5 instead.",
      v.boolean(),
    ),
    conditionalWrites: optional(
      "Whether the store obeys If-Match and If-None-Match, by default yes; `agarose doctor` checks it. With `false`, " +
        "manifests are read just before and just after each write.",
      v.boolean(),
    ),
    credentials: optional("The source of this region's keys.", credentials),
  }),
  v.transform((given) => ({ ...given, url: given.url ?? `${given.endpoint}/${given.bucket}` })),
);

const fixedCode = v.strictObject({
  k: about("Data chunks. Any k of the k + m chunks restore an object.", count),
  m: about("Parity chunks.", count),
});
/** `lazy` rather than a union, whose errors name no field. */
const code = v.pipe(
  v.lazy((input) =>
    typeof input === "string" ? v.literal("auto", 'must be "auto" or an object such as {"k": 4, "m": 2}') : fixedCode,
  ),
  v.title('`"auto"` or object'),
);

const origin = v.strictObject({
  url: optional(
    "Base URL of the objects for reads without credentials, which PoPs use. Alone, without a bucket, it cannot be listed.",
    httpUrl,
  ),
  endpoint: optional("S3 endpoint of the bucket.", httpUrl),
  bucket: optional("Bucket with plain objects, whose names become keys. It is none of `regions`.", bucketName),
  awsRegion: optional("Region name that requests are signed for.", text, "us-east-1"),
  credentials: optional("The source of the keys. Default: that of the whole file.", credentials),
});

/** The schema of `agarose.config.json`. */
export const configSchema = v.pipe(
  v.strictObject({
    $schema: optional(
      "Ignored. Editors complete and check the file by it: `./node_modules/agarose/config-schema.json`.",
      v.string(),
    ),
    regions: about(
      "Buckets that hold the chunks, one a region.",
      v.pipe(
        v.array(region),
        v.minLength(1, "is empty: at least 1 region is needed"),
        v.check((all) => {
          const names = all.flatMap(({ name: own, formerly = [] }) => [own].concat(formerly));
          return new Set(names).size === names.length;
        }, "names a region twice"),
      ),
    ),
    origin: optional(
      "Plain objects, in a bucket or behind a URL. `agarose adopt` stores those of a bucket in the regions, and so does " +
        "the first read of one by the command line, a gateway or the library.",
      v.pipe(
        origin,
        v.check(
          ({ url, endpoint, bucket }) =>
            (endpoint === undefined) === (bucket === undefined) && (url ?? bucket) !== undefined,
          "has neither `endpoint` and `bucket` nor `url`",
        ),
      ),
    ),
    code: optional(
      "Erasure code of new objects. `auto` chooses by size. Objects of at most 16 KiB travel in their manifests, " +
        "and k grows with size. `agarose doctor` shows the codes.",
      code,
      "auto",
    ),
    codes: optional(
      "Exceptions from `code` by prefix and size. The first that fits decides.",
      v.array(
        v.strictObject({
          prefix: optional("Begins the keys that the rule is for. Default: all.", text),
          bytesMax: optional("Largest object that the rule is for. Default: any.", count),
          code: about("Erasure code of these objects.", code),
        }),
      ),
      [],
    ),
    hot: optional(
      "Extra chunks of the objects that readers request most from PoPs, near these PoPs. `agarose scrub` stores and removes " +
        "them after each walk, where it has the admin tokens of the PoPs.",
      v.strictObject({
        storage: about(
          "Largest share of all extra chunks in the stored bytes. 0 for none.",
          v.pipe(amount, v.maxValue(1, "is above 1")),
        ),
      }),
      { storage: 0.05 },
    ),
    headers: optional(
      "Response headers of the objects that `put`, `sync`, `gateway` and the library store. Every rule that matches a " +
        "key adds to them, a later one decides, and `--header` or a client of the gateway decides above all.",
      v.array(
        v.strictObject({
          keys: about(
            "Pattern of keys, such as `*.html` at any depth or `app/assets/*` from the beginning of the key.",
            v.pipe(text, v.maxLength(1024, "is longer than 1024 characters")),
          ),
          headers: about("Headers by name.", v.record(v.pipe(v.string(), v.toLowerCase()), text)),
        }),
      ),
      [],
    ),
    auto: optional(
      "Settings of `auto` codes, in addition to the regions and `survive`.",
      v.strictObject({
        storageMax: optional(
          "Stored bytes per byte of a usual site, images and some video. Default: 1.45, or 1.1 times the least " +
            "that `survive` allows.",
          v.pipe(v.number(), v.title("number"), v.minValue(1, "is below 1")),
        ),
        connections: optional(
          "Requests that a client has under way at one host. Default: 6.",
          v.pipe(count, v.minValue(1, "is below 1")),
        ),
      }),
      {},
    ),
    stripeBytes: optional(
      "Object bytes per stripe, the unit that is encoded and read at a time.",
      count,
      STRIPE_BYTES_DEFAULT,
    ),
    compress: optional(
      "Which objects are stored compressed where that saves a tenth: `small` are those of one stripe, but for " +
        "files that libraries read by ranges. Encrypted objects are compressed too.",
      v.pipe(v.picklist(["none", "small", "all"], "is none of none, small, all"), v.title("`none`, `small` or `all`")),
      "small",
    ),
    survive: optional(
      "Losses that every object must survive. `put` refuses a layout that does not keep this promise.",
      v.strictObject({
        regions: about("Regions that may be lost at once.", count),
        providers: about("Providers that may be lost at once.", count),
      }),
      { regions: 1, providers: 0 },
    ),
    write: optional(
      "When a `put` succeeds although regions fail.",
      v.strictObject({
        happy: about(
          "Chunks of an object that `put` must store; `repair` makes the rest. The default is those that remain " +
            "after the losses in `survive`, and never below k.",
          count,
        ),
      }),
    ),
    keep: optional(
      "Keys that have a history. Of several rules for a key, that of the longest prefix decides. Without one, `gc` " +
        "deletes versions that were replaced, and `rm` deletes the object.",
      rules(
        v.strictObject({
          prefix: optional("Begins the keys that the rule is for.", v.string(), ""),
          time: about("How long a version stays after a newer one or `rm` has replaced it, such as `30d`.", time),
        }),
      ),
      [],
    ),
    expire: optional(
      "Keys that `agarose expire` removes. Of several rules for a key, that of the longest prefix decides. The age " +
        "counts from when the manifest was last stored, by the clocks of the regions.",
      rules(
        v.strictObject({
          prefix: about("Begins the keys that expire.", v.pipe(v.string(), v.minLength(1, "is empty"))),
          time: about("How old an object may become, such as `30d`, before it is removed.", time),
        }),
      ),
      [],
    ),
    encryption: optional(
      "Keys whose objects are encrypted before they are coded. Of several rules for a key, that of the longest " +
        "prefix encrypts, and the secrets of all of them decrypt.",
      rules(
        v.strictObject({
          prefix: optional("Begins the keys that the rule is for.", v.string(), ""),
          secrets: about(
            "One secret, `aes256:` and base64 of 32 bytes, or two while one replaces the other. The first encrypts, " +
              "both decrypt.",
            v.pipe(
              v.array(secretSource),
              v.minLength(1, "is empty: `agarose keys secret` makes one"),
              v.maxLength(2, "has more than 2 secrets"),
            ),
          ),
        }),
      ),
      [],
    ),
    publicKeys: optional(
      "Publishers whose manifests are used. Required, unless `unsigned` is set or every address is on this machine.",
      v.pipe(
        v.array(publicKey),
        v.minLength(1, "is empty: `agarose keys new` makes a key"),
        v.maxLength(8, "has more than 8 keys"),
      ),
    ),
    unsigned: optional(
      "Whether every manifest is used, signed or not, and manifests are written unsigned.",
      v.boolean(),
    ),
    signing: optional("The private key by which `put`, `rm` and `repair` sign manifests.", signing),
    pops: optional(
      "PoPs, deployed or on your own machines. `status` and `doctor` check them; `init` passes them to the web app.",
      v.array(
        v.strictObject({
          name: about("Name of the PoP: its environment in Wrangler's configuration.", name),
          url: about("Its address.", httpUrl),
          placement: optional(
            "Cloud region that Cloudflare runs the PoP next to. `init --worker` needs it.",
            v.pipe(
              v.string(),
              v.title("cloud region"),
              v.regex(/^(aws|gcp|azure):[a-z0-9-]+$/, "is not a cloud region such as aws:eu-central-1"),
            ),
          ),
          location: optional(
            "Where Cloudflare creates its Durable Objects. Default: near an AWS `placement`.",
            v.pipe(text, v.title("location hint")),
          ),
          adminTokenFile: optional(
            "File that holds the PoP's `ADMIN_TOKEN`, for commands without `AGAROSE_ADMIN_TOKEN` in their environment.",
            text,
          ),
          node: optional("Whether `agarose pop` runs it on your own machine, so that it is not a Worker.", v.boolean()),
        }),
      ),
      [],
    ),
    site: optional(
      "The site that PoPs serve by `/o/`, below a prefix: folders by their index page, and a page for missing paths. " +
        "Its pages may run scripts. `init --worker` and `pop` tell PoPs of it.",
      v.strictObject({
        prefix: optional("Begins the keys of the site.", v.string(), ""),
        index: optional("Name of the page that answers for a folder.", fileName, "index.html"),
        notFound: optional("Name of the page below `prefix` that answers with status 404. Default: none.", fileName),
      }),
    ),
    credentials: optional(
      "The source of the keys of regions without `credentials`. Default: the AWS SDK's default chain.",
      credentials,
    ),
    providers: optional(
      "Settings by provider. A region's own `credentials` take precedence.",
      v.record(
        name,
        v.strictObject({
          credentials: about("The source of the keys of this provider's regions.", credentials),
        }),
      ),
      {},
    ),
  }),
  v.check(
    ({ regions }) => regions.some(({ drain }) => drain !== true),
    "drains every region: leave `drain` out of those that stay",
  ),
  v.check(
    ({ origin: from, regions }) =>
      !regions.some((one) => one.endpoint === from?.endpoint && one.bucket === from.bucket),
    "has an `origin` that is the bucket of a region: name the bucket of your plain objects",
  ),
  v.check(({ providers, regions }) => {
    const known = new Set(regions.map(({ provider }) => provider));
    return Object.keys(providers).every((provider) => known.has(provider));
  }, "has a `providers` entry that no region names as its provider"),
  v.check(
    ({ publicKeys, unsigned }) => !(publicKeys && unsigned),
    "has both `publicKeys` and `unsigned`: keep one of them",
  ),
  v.check(
    (config) => config.publicKeys !== undefined || config.unsigned === true || isLocalWorld(config),
    'has neither `publicKeys` nor `"unsigned": true`: make a key with `agarose keys new`',
  ),
  v.check(
    (config) => !config.publicKeys?.includes(DEVELOPMENT_KEY.publicKey) || isLocalWorld(config),
    "trusts the development key, whose private half everyone knows: make a key of your own with `agarose keys new`",
  ),
  v.check(
    ({ signing: own, publicKeys }) => !own || publicKeys !== undefined,
    "has `signing` without `publicKeys`: `agarose keys show` prints the key to add",
  ),
  v.check(
    ({ code: own, codes, write }) => !write || (own !== "auto" && codes.length === 0),
    'has `write.happy` with codes that differ by size: set `code` to {"k", "m"} and leave `codes` out, or remove `write`',
  ),
  v.check(
    ({ code: own, write }) => !write || own === "auto" || (write.happy >= own.k && write.happy <= own.k + own.m),
    "has a `write.happy` that is not from k to k + m",
  ),
);

/** Whether all its addresses are of this machine, those that others use included. */
function isLocalWorld({ regions, pops }: LocatedConfig): boolean {
  const addresses = [...regions.flatMap(({ endpoint, url }) => [endpoint, url]), ...pops.map(({ url }) => url)];
  return addresses.every((url) => isLocal({ url }));
}

interface LocatedConfig {
  readonly regions: readonly { readonly endpoint: string; readonly url: string }[];
  readonly pops: readonly { readonly url: string }[];
}

/** A configuration with its defaults filled in. */
export type Config = v.InferOutput<typeof configSchema>;
/** One region of a configuration. */
export type RegionConfig = Config["regions"][number];
/** Where a secret comes from: exactly one of its fields is set. */
export type SecretLocation = v.InferOutput<typeof secretSource>;
/** Where a key pair comes from: exactly one of `profile`, `env` and `command` is set. */
export type CredentialSource = v.InferOutput<typeof credentials>;
