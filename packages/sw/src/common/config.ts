/**
 * The client configuration: where the PoPs and the buckets are, and which paths belong to Agarose. It comes from one
 * call, or from a JSON file that the service worker's own URL names.
 */
import { AgaroseError } from "@agarose/core";
import type { SecretRule } from "@agarose/core/encryption";
import { HAS_MESSAGES } from "@agarose/core/features";
import { isCount, isRecord, isText, trustOf, type SignatureCheck } from "@agarose/core/format";

/** A PoP or a region: its name, and the base URL below which its routes or objects are. */
export interface Endpoint {
  readonly name: string;
  readonly url: string;
}

/** The configuration as a caller writes it: fields with defaults may be missing, and URLs may be relative. */
export interface ClientConfigInput {
  /**
   * Paths below it are objects. Starts and ends with a slash. A file may omit it, or must match the one of `register`.
   *
   * @defaultValue `/ec/`
   */
  readonly prefix?: string;
  /** Names and base URLs of the PoPs, in order of preference until their round trips are measured. */
  readonly pops?: readonly Endpoint[];
  /** The only buckets that are read. Reads continue with them while no PoP answers. `[]` lets the PoPs name them. */
  readonly regions?: readonly Endpoint[];
  /**
   * Requests beyond k that a stripe starts with.
   *
   * @defaultValue the PoP's advice
   */
  readonly delta?: number | undefined;
  /** How many bytes of read objects a worker with a store keeps for offline reads. */
  readonly offline?: { readonly bytes: number } | undefined;
  /**
   * Keys of publishers, `ed25519:` and base64 of 32 bytes. A manifest without a signature by one of them is refused. A
   * configuration needs this or `unsigned`, unless all its addresses are on this machine.
   */
  readonly publicKeys?: readonly string[] | undefined;
  /**
   * `true` in place of `publicKeys`: every manifest is used, signed or not.
   *
   * @defaultValue `false`
   */
  readonly unsigned?: boolean | undefined;
  /**
   * `[{ prefix, secrets }]`: secrets of encrypted objects, for everyone who
   * can read the configuration.
   */
  readonly encryption?: readonly SecretRule[] | undefined;
}

/** Checked: URLs are absolute, without a trailing slash. */
export interface ClientConfig extends ClientConfigInput {
  readonly prefix: string;
  readonly pops: readonly Endpoint[];
  readonly regions: readonly Endpoint[];
}

/** Decides which manifests a client uses. Throws CONFIG_INVALID. */
export function clientTrust(config: ClientConfig): SignatureCheck {
  return trustOf(config, [...config.pops, ...config.regions]);
}

/** A file with a configuration. The prefix is known at once, because a worker must route before it can load. */
export interface ConfigFile {
  readonly prefix: string;
  readonly url: string;
}

/** The settings in a worker's own URL. */
export interface OwnConfig extends ConfigFile {
  /** Whether the first install takes control of open pages. */
  readonly claim: boolean;
  /** Whether the worker responds when an object is opened as a page. */
  readonly navigations: boolean;
}

/** Where a configuration comes from. */
export type ConfigSource = ConfigFile | { readonly prefix: string; readonly config: ClientConfig };

/** The path below which requests are for objects, unless the configuration names another. */
export const PREFIX_DEFAULT = "/ec/";

/**
 * Checks `input` and fills in what is omitted; relative URLs are resolved against `base`. Throws CONFIG_INVALID,
 * naming the field.
 */
export function parseConfig(input: unknown, base: string): ClientConfig {
  // Anything but an object leaves every field undefined. The elements of a long list are no fields.
  const { prefix, pops, regions, ...others } = (isRecord(input) ? input : {}) as ClientConfigInput;
  const config: ClientConfig = {
    // The store checks `offline`, `trustOf` the public keys, and the client the secrets.
    ...others,
    prefix: parsePrefix(prefix),
    pops: parseEndpoints("pops", pops ?? [], base),
    regions: parseEndpoints("regions", regions ?? [], base),
  };
  const { delta } = config;
  if (!(config.pops[0] ?? config.regions[0])) {
    throw invalid(
      "configuration",
      HAS_MESSAGES && `names 0 PoPs and 0 regions: write {"pops": [{"name", "url"}], "regions": […]}`,
    );
  }
  // An app that others open has publishers, whatever listens on their own machines.
  trustOf(config, [...config.pops, ...config.regions, { url: base }]);
  if (delta === undefined || isCount(delta, 255)) return config;
  throw invalid("delta", HAS_MESSAGES && `is ${JSON.stringify(delta)}: a whole number from 0 to 255 is expected`);
}

/**
 * `parseConfig` of a file. Throws CONFIG_INVALID too when the file has a prefix other than the worker, which takes it
 * from its own URL.
 */
export function parseFile(input: unknown, { url, prefix }: ConfigFile): ClientConfig {
  const config = parseConfig(input, url);
  const isOther = (input as ClientConfigInput).prefix !== undefined && config.prefix !== prefix;
  if (!isOther) return { ...config, prefix };
  throw invalid(
    "prefix",
    HAS_MESSAGES &&
      `is ${config.prefix} in ${url} and ${prefix} in the worker's URL: register({ prefix: "${config.prefix}" }), or ` +
        `leave it out of the file`,
    { prefix: config.prefix, expected: prefix },
  );
}

/**
 * The parameters of a worker's own URL, or undefined when it names no configuration: `?config=/agarose.json`,
 * `&prefix=/media/` for a prefix other than `/ec/`, `&claim=no` to leave open pages alone, `&navigations=yes` to open
 * objects as pages.
 *
 * @throws CONFIG_INVALID when the prefix is not a path below the root, or the configuration is of another origin.
 */
export function configFromUrl(href: string): OwnConfig | undefined {
  const { searchParams } = new URL(href);
  const file = searchParams.get("config");
  if (file === null) return undefined;
  return {
    prefix: parsePrefix(searchParams.get("prefix")),
    url: parseOwnUrl(file, href),
    claim: searchParams.get("claim") !== "no",
    navigations: searchParams.get("navigations") === "yes",
  };
}

function parsePrefix(given: unknown): string {
  const prefix = given ?? PREFIX_DEFAULT;
  // The paths of requests are percent-encoded and without dot segments, so the prefix is too.
  const path = isText(prefix, /^\/([^/?#]+\/)+$/) ? new URL(prefix, "https://a").pathname : "/";
  // A worker for every path of the app could replace its pages.
  if (path !== "/") return path;
  throw invalid(
    "prefix",
    HAS_MESSAGES &&
      `is ${JSON.stringify(prefix)}: a path such as /ec/, with a slash at both ends and a name between, is expected`,
  );
}

function parseEndpoints(field: string, value: unknown, base: string): Endpoint[] {
  if (!Array.isArray(value)) throw invalid(field, HAS_MESSAGES && `is not a list: write [{"name", "url"}, …]`);
  const names = new Set<string>();
  return value.map((entry: unknown) => {
    const { name, url } = (entry ?? {}) as Partial<Endpoint>;
    if (!isText(name)) throw invalid(field, HAS_MESSAGES && `has an entry without a name: give it one`);
    if (names.has(name)) throw invalid(field, HAS_MESSAGES && `names ${name} twice: remove one`);
    names.add(name);
    return { name, url: parseUrl(field, url, base).replace(/\/+$/, "") };
  });
}

/** A script that is injected into a page could register the worker with its own configuration from another origin. */
function parseOwnUrl(file: string, href: string): string {
  const url = parseUrl("config", file, href);
  const { origin } = new URL(href);
  if (url.startsWith(`${origin}/`)) return url;
  throw invalid("config", HAS_MESSAGES && `is at ${url}, which is not of the worker's origin: serve it from ${origin}`);
}

/** Credentials in a URL would be public. */
function parseUrl(field: string, text: unknown, base: string): string {
  const href = isText(text) && URL.canParse(text, base) ? new URL(text, base).href : "";
  if (/^https?:\/\/[^/@]+\//.test(href)) return href;
  throw invalid(
    field,
    HAS_MESSAGES && `has the URL ${JSON.stringify(text)}: an http or https URL without credentials is expected`,
  );
}

function invalid(field: string, problem: string | false, more?: object): AgaroseError {
  return new AgaroseError("CONFIG_INVALID", HAS_MESSAGES && `${field} ${problem}`, { field, ...more });
}
