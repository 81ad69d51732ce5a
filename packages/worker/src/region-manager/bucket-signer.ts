/**
 * Private buckets: presigned GETs (AWS Signature Version 4) for what this PoP reads and for what its plans name. The same
 * object has the same URL for a minute, so that signing costs little and caches see few addresses.
 */
import { AgaroseError, chunkName, objectUrl, type Manifest, type SignedChunks } from "@agarose/core";
import { AwsClient } from "aws4fetch";
import type { Region } from "../http/settings.ts";

export interface BucketCredentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
}

/** A URL is signed as of the beginning of its term, and good for `EXPIRES_SECONDS` from there. */
const TERM_MS = 60_000;
export const EXPIRES_SECONDS = 300;
/** Signatures of a term that are kept: some 2 MB. */
const SIGNATURES_MAX = 5_000;
/** What buckets call credentials and clocks that they do not take, as against objects that are not there. */
const REFUSALS = /<Code>(InvalidAccessKeyId|SignatureDoesNotMatch|RequestTimeTooSkewed|ExpiredToken|InvalidToken)</;
const REFUSAL_BYTES_MAX = 16 * 1024;

export class BucketSigner {
  readonly #now: () => number;
  readonly #clients = new Map<string, AwsClient>();
  readonly #regions: readonly Region[];
  #term = 0;
  readonly #queries = new Map<string, string>();

  /**
   * @param regions those with `private` need credentials of their name or of `*`.
   * @param now milliseconds since 1970.
   * @throws CONFIG_INVALID for a private region without credentials.
   */
  constructor(regions: readonly Region[], credentials: Readonly<Record<string, BucketCredentials>>, now: () => number) {
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

  /** `fetch` for the PoP's own reads: signed where `url` is below a private region. */
  async fetch(url: string, init: RequestInit, platformFetch: typeof fetch): Promise<Response> {
    const region = this.#regions.find(({ popUrl }) => isBelow(url, popUrl));
    if (!region) return platformFetch(url, init);
    const response = await platformFetch(`${url}?${await this.#query(region.name, url)}`, init);
    return response.status === 403 ? unlessRefused(response, region.name) : response;
  }

  /** The queries of all chunks that `manifest` places in `region`; undefined for one that anyone can read. */
  async sign(region: Region, { key, version, placement }: Manifest): Promise<SignedChunks | undefined> {
    if (!region.private) return undefined;
    const chunks = placement.flatMap((name, chunk) => (name === region.name ? [chunk] : []));
    const queries = chunks.map(async (chunk) => {
      const url = objectUrl(region.url, chunkName(key, version, chunk));
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

/** Whether `url` is one of an object below the base URL `base`. */
export function isBelow(url: string, base: string): boolean {
  return url.startsWith(`${base.replace(/\/$/, "")}/`);
}

/** A bucket says 403 for what is not there, too; but refused credentials must not look like an object that is missing. */
async function unlessRefused(response: Response, region: string): Promise<Response> {
  const text = (await response.text()).slice(0, REFUSAL_BYTES_MAX);
  const [, code] = REFUSALS.exec(text) ?? [];
  if (code === undefined) return new Response(text, { status: response.status, headers: response.headers });
  throw new AgaroseError(
    "SOURCE_FAILED",
    `region ${region} refused this PoP's credentials (${code}): check secret BUCKET_CREDENTIALS, and awsRegion in REGIONS`,
    { region, code },
  );
}

/** Secret BUCKET_CREDENTIALS: `{"<region>" or "*": {"accessKeyId", "secretAccessKey"}}`. Throws CONFIG_INVALID. */
export function parseBucketCredentials(text: string | undefined): Record<string, BucketCredentials> {
  let json: unknown;
  try {
    json = JSON.parse(text || "{}");
  } catch {
    // The text is a secret: nothing of it goes into a message.
    throw invalid("is not JSON");
  }
  const isText = (value: unknown): boolean => typeof value === "string" && value !== "";
  const entries = typeof json === "object" && json !== null ? Object.entries(json as Record<string, unknown>) : [];
  for (const [region, value] of entries) {
    const { accessKeyId, secretAccessKey } = (value ?? {}) as Partial<BucketCredentials>;
    if (!isText(accessKeyId) || !isText(secretAccessKey))
      throw invalid(`has no accessKeyId and secretAccessKey for ${region}`);
  }
  return Object.fromEntries(entries) as Record<string, BucketCredentials>;
}

function invalid(problem: string): AgaroseError {
  return new AgaroseError("CONFIG_INVALID", `secret BUCKET_CREDENTIALS ${problem}`, { variable: "BUCKET_CREDENTIALS" });
}
