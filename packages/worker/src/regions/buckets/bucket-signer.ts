/**
 * Private buckets: presigned GETs (AWS Signature Version 4) for what this PoP reads and for what its plans name. The
 * URL of an object stays the same for a minute, so signing costs little and caches see few addresses.
 */
import { AgaroseError } from "@agarose/core";
import {
  chunkNameOf,
  chunkRegions,
  LEAF_LIST,
  objectUrl,
  type Manifest,
  type SignedChunks,
} from "@agarose/core/format";
import { AwsClient } from "aws4fetch";
import type { BucketCredentials, ConfiguredRegion } from "../region-settings.ts";

/** A URL is signed as of the beginning of its term. */
const TERM_MS = 60_000;
/** A URL is valid for so long from the beginning of its term. */
const EXPIRES_SECONDS = 300;
/** Signatures that are kept during a term: about 2 MB. */
const SIGNATURES_MAX = 5_000;
/** The codes of wrong credentials and clocks, as opposed to objects that do not exist. */
const REFUSALS = /<Code>(InvalidAccessKeyId|SignatureDoesNotMatch|RequestTimeTooSkewed|ExpiredToken|InvalidToken)</;
const REFUSAL_BYTES_MAX = 16 * 1024;

/** Signs requests to private regions, and leaves all others as they are. */
export class BucketSigner {
  readonly #now: () => number;
  readonly #clients = new Map<string, AwsClient>();
  readonly #regions: readonly ConfiguredRegion[];
  #term = 0;
  readonly #queries = new Map<string, string>();

  /**
   * @param credentials by name of the region, or `*` for the others.
   * @param now milliseconds since 1970.
   * @throws CONFIG_INVALID for a private region without credentials.
   */
  constructor(
    regions: readonly ConfiguredRegion[],
    credentials: Readonly<Record<string, BucketCredentials>>,
    now: () => number,
  ) {
    this.#now = now;
    this.#regions = regions.filter((region) => region.private);
    for (const { name, awsRegion = "us-east-1" } of this.#regions) {
      const keys = credentials[name] ?? credentials["*"];
      if (!keys) {
        throw new AgaroseError(
          "CONFIG_INVALID",
          `region ${name} is private, and secret BUCKET_CREDENTIALS has no credentials of ${JSON.stringify(name)} or "*"`,
          { region: name },
        );
      }
      this.#clients.set(name, new AwsClient({ ...keys, service: "s3", region: awsRegion }));
    }
  }

  /**
   * Fetches `url`, signed where it is below a private region. Rejects with SOURCE_FAILED where a bucket refuses the
   * keys.
   */
  async fetch(url: string, init: RequestInit, platformFetch: typeof fetch): Promise<Response> {
    const region = this.#regions.find(({ popUrl }) => isBelow(url, popUrl));
    if (!region) return platformFetch(url, init);
    const response = await platformFetch(`${url}?${await this.#query(region.name, url)}`, init);
    return response.status === 403 ? checkRefusal(response, region.name) : response;
  }

  /** Returns the queries of all chunks that `manifest` places in `region`, or undefined for a public region. */
  async sign(region: ConfiguredRegion, manifest: Manifest): Promise<SignedChunks | undefined> {
    if (!region.private) return undefined;
    const chunks = chunkRegions(manifest).flatMap((name, chunk) => (name === region.name ? [chunk] : []));
    if (manifest.leaves?.includes(region.name)) chunks.push(LEAF_LIST);
    const queries = chunks.map(async (chunk) => {
      const url = objectUrl(region.url, chunkNameOf(manifest, chunk));
      return [String(chunk), await this.#query(region.name, url)] as const;
    });
    const aged = Math.ceil((this.#now() % TERM_MS) / 1000);
    return { seconds: EXPIRES_SECONDS - aged, queries: Object.fromEntries(await Promise.all(queries)) };
  }

  async #query(region: string, url: string): Promise<string> {
    const term = Math.floor(this.#now() / TERM_MS);
    if (term !== this.#term || this.#queries.size >= SIGNATURES_MAX) {
      this.#queries.clear();
      this.#term = term;
    }
    let query = this.#queries.get(url);
    if (query === undefined) {
      const datetime = new Date(term * TERM_MS).toISOString().replace(/[:-]|\.\d{3}/g, "");
      const signed = await this.#clients.get(region)!.sign(`${url}?X-Amz-Expires=${EXPIRES_SECONDS}`, {
        aws: { signQuery: true, datetime },
      });
      query = new URL(signed.url).search.slice(1);
      this.#queries.set(url, query);
    }
    return query;
  }
}

/** Returns whether `url` is below the base URL `base`. */
export function isBelow(url: string, base: string): boolean {
  return url.startsWith(`${base.replace(/\/$/, "")}/`);
}

/** Buckets also answer 403 for objects that do not exist. Refused credentials must not look like a missing object. */
async function checkRefusal(response: Response, region: string): Promise<Response> {
  const text = (await response.text()).slice(0, REFUSAL_BYTES_MAX);
  const [, code] = REFUSALS.exec(text) ?? [];
  if (code === undefined) return new Response(text, { status: response.status, headers: response.headers });
  throw new AgaroseError(
    "SOURCE_FAILED",
    `region ${region} refused this PoP's credentials (${code}): check secret BUCKET_CREDENTIALS, and awsRegion in REGIONS`,
    { region, code },
  );
}
