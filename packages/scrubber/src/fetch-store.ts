/**
 * A bucket through `fetch`, which is what a Worker has. The AWS SDK would weigh thirty times as much there.
 *
 * Six requests of an invocation may wait for their answers. A streamed put waits for its own until its last byte, and
 * that byte for reads, so a few of them could wait for each other. So a put collects its bytes first.
 */
import { createHash } from "node:crypto";
import { AgaroseError, toAgaroseError, type ErrorCode, type FetchedResponse } from "@agarose/core";
import { checkedListing, PAGE_BYTES_MAX, type ListedPage } from "@agarose/storage/buckets/checked-listing";
import { CREDENTIAL_PROBLEMS } from "@agarose/storage/buckets/credential-problems";
import { ReadWriteReadStore } from "@agarose/storage/buckets/read-write-read";
import { readRecordText } from "@agarose/storage/buckets/small-record";
import type { GetOptions, ListedObject, PutBody, PutOptions, PutReceipt, Store } from "@agarose/storage/buckets/store";
import type { Config, RegionConfig } from "@agarose/storage/config/config";
import { AwsClient } from "aws4fetch";
import { SaxesParser } from "saxes";

/** A Worker has 128 MB, and a repair writes several chunks at once. */
export const PUT_BYTES_MAX = 16 * 1024 * 1024;
/** A request fails when its answer does not begin within this time. */
const ANSWER_MS_MAX = 60_000;
/** Tries after the first, for what is refused with 429 or 5xx. */
const RETRIES = { retries: 2, initRetryMs: 100 };
const AWS_REGION = "us-east-1";

/**
 * Opens the bucket of every region. `onRequest` is called with each request, retries included.
 *
 * @throws CONFIG_INVALID where a variable with its keys is not set.
 */
export function openStores(config: Config, onRequest: () => void): Store[] {
  return config.regions.map((region) => {
    const source = region.credentials ?? config.providers[region.provider]?.credentials ?? config.credentials;
    const names = source && "env" in source ? source.env : undefined;
    const store = new FetchStore(region, clientOf(region, onRequest, names));
    return region.conditionalWrites === false ? new ReadWriteReadStore(store) : store;
  });
}

/** The variables that hold a region's keys. */
interface KeyNames {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string | undefined;
}

/** The variables that AWS's own tools read, where the configuration names none. */
const DEFAULT_NAMES: KeyNames = { accessKeyId: "AWS_ACCESS_KEY_ID", secretAccessKey: "AWS_SECRET_ACCESS_KEY" };

function clientOf(
  { name, awsRegion }: RegionConfig,
  onRequest: () => void,
  names: KeyNames = DEFAULT_NAMES,
): AwsClient {
  const valueOf = (variable: string): string => {
    const value = process.env[variable];
    if (value) return value;
    const message = `region ${name} takes its keys from ${variable}, which is not set: wrangler secret put ${variable}`;
    throw new AgaroseError("CONFIG_INVALID", message, { region: name, variable });
  };
  const client = new AwsClient({
    accessKeyId: valueOf(names.accessKeyId),
    secretAccessKey: valueOf(names.secretAccessKey),
    ...(names.sessionToken && { sessionToken: valueOf(names.sessionToken) }),
    service: "s3",
    region: awsRegion ?? AWS_REGION,
    ...RETRIES,
  });
  // Each try is signed on its own.
  const sign = client.sign.bind(client);
  client.sign = (...request) => {
    onRequest();
    return sign(...request);
  };
  return client;
}

/** A bucket behind an S3 endpoint. */
export class FetchStore implements Store {
  readonly region: RegionConfig;
  readonly #client: AwsClient;

  constructor(region: RegionConfig, client: AwsClient) {
    this.region = region;
    this.#client = client;
  }

  async get(name: string, { range, signal }: GetOptions = {}): Promise<FetchedResponse> {
    const headers = { ...(range && { range }) };
    const answer = await this.#ask("SOURCE_FAILED", `for ${name}`, name, { headers, signal });
    return { status: answer.status, headers: answer.headers, body: answer.ok ? answer.body : null };
  }

  async head(name: string, signal?: AbortSignal): Promise<number | undefined> {
    const what = `for ${name}`;
    const answer = await this.#ask("SOURCE_FAILED", what, name, { method: "HEAD", signal });
    if (answer.status === 404) return undefined;
    await this.#check(answer, "SOURCE_FAILED", what);
    return Number(answer.headers.get("content-length") ?? 0);
  }

  async put(name: string, body: PutBody, options: PutOptions): Promise<PutReceipt> {
    const { bytes, contentType, cacheControl, ifNoneMatch, ifMatch, signal } = options;
    const what = `to store ${name}`;
    if (bytes > PUT_BYTES_MAX) throw this.#tooLong(name, bytes);
    const content = (body instanceof Uint8Array ? body : await collect(body, bytes)) as Uint8Array<ArrayBuffer>;
    const headers = {
      "content-type": contentType,
      // The store refuses other bytes than these.
      "x-amz-content-sha256": createHash("sha256").update(content).digest("hex"),
      ...(cacheControl && { "cache-control": cacheControl }),
      ...(ifNoneMatch && { "if-none-match": ifNoneMatch }),
      ...(ifMatch && { "if-match": ifMatch }),
    };
    const answer = await this.#ask("STORE_FAILED", what, name, { method: "PUT", headers, body: content, signal });
    await this.#check(answer, "STORE_FAILED", what);
    await answer.body?.cancel();
    return { etag: answer.headers.get("etag") ?? undefined };
  }

  list(prefix: string, signal?: AbortSignal, after?: string): AsyncGenerator<ListedObject> {
    const what = `to list ${prefix}`;
    return checkedListing(this.region, { prefix, after }, async (token) => {
      const query = new URLSearchParams({
        "list-type": "2",
        prefix,
        ...(after !== undefined && { "start-after": after }),
        ...(token !== undefined && { "continuation-token": token }),
      });
      const late = AbortSignal.timeout(ANSWER_MS_MAX);
      const own = signal ? AbortSignal.any([signal, late]) : late;
      const answer = await this.#ask("SOURCE_FAILED", what, "", { signal: own }, query);
      await this.#check(answer, "SOURCE_FAILED", what);
      const text = readRecordText(answer, what, PAGE_BYTES_MAX);
      return listedPage(await text.catch((error: unknown) => this.#fail("SOURCE_FAILED", what, error)));
    });
  }

  async remove(names: readonly string[], signal?: AbortSignal): Promise<{ name: string; problem: string }[]> {
    const failed: { name: string; problem: string }[] = [];
    for (const name of names) {
      await this.#remove(name, {}, signal, [404]).catch((error: unknown) =>
        failed.push({ name, problem: toAgaroseError(error, "STORE_FAILED").message }),
      );
    }
    return failed;
  }

  removeMatching(name: string, etag: string, signal?: AbortSignal): Promise<void> {
    return this.#remove(name, { "if-match": etag }, signal);
  }

  close(): void {
    // Connections are the runtime's.
  }

  async #remove(
    name: string,
    headers: Record<string, string>,
    signal: AbortSignal | undefined,
    isDoneWith: readonly number[] = [],
  ): Promise<void> {
    const what = `to remove ${name}`;
    const answer = await this.#ask("STORE_FAILED", what, name, { method: "DELETE", headers, signal });
    if (!isDoneWith.includes(answer.status)) await this.#check(answer, "STORE_FAILED", what);
    await answer.body?.cancel();
  }

  /** Resolves with every status that is not about the keys. What is no success has its body read. */
  async #ask(
    code: ErrorCode,
    what: string,
    name: string,
    { signal, ...init }: Omit<RequestInit, "signal"> & { readonly signal?: AbortSignal | undefined },
    query?: URLSearchParams,
  ): Promise<Response> {
    const late = new AbortController();
    const timer = setTimeout(() => late.abort(lateAnswer()), ANSWER_MS_MAX);
    const signals = signal ? [signal, late.signal] : [late.signal];
    try {
      const answer = await this.#client.fetch(this.#url(name, query), { ...init, signal: AbortSignal.any(signals) });
      if (answer.status < 400) return answer;
      const { status, headers } = answer;
      const text = await readRecordText(answer, what).catch(() => "");
      if (status === 403 || CREDENTIAL_PROBLEMS.has(codeIn(text)))
        throw this.#refusal("CREDENTIALS_REFUSED", what, status, text);
      return new Response(text, { status, headers });
    } catch (error) {
      if (error instanceof AgaroseError) throw error;
      signal?.throwIfAborted();
      return this.#fail(code, what, error);
    } finally {
      clearTimeout(timer);
    }
  }

  #url(name: string, query?: URLSearchParams): string {
    const { endpoint, bucket } = this.region;
    const path = [bucket, ...name.split("/")].map(encodeURIComponent).join("/");
    const base = `${endpoint.replace(/\/$/, "")}/${path}`;
    return query ? `${base}?${query.toString().replaceAll("+", "%20")}` : base;
  }

  async #check(answer: Response, code: ErrorCode, what: string): Promise<void> {
    if (!answer.ok) throw this.#refusal(code, what, answer.status, await answer.text());
  }

  #refusal(code: ErrorCode, what: string, status: number, text: string): AgaroseError {
    const { name, bucket, endpoint } = this.region;
    const error = codeIn(text);
    const hint =
      code === "CREDENTIALS_REFUSED" ? "check its keys and the bucket's policy" : `check ${endpoint}/${bucket}`;
    const message = `region ${name} failed ${what} (${status} ${error}): ${hint}`;
    return new AgaroseError(code, message, { region: name, bucket, endpoint, status, error });
  }

  #fail(code: ErrorCode, what: string, error: unknown): never {
    const { name, bucket, endpoint } = this.region;
    const message = `region ${name} failed ${what} (${String(error)}): check ${endpoint}/${bucket}`;
    throw new AgaroseError(code, message, { region: name, bucket, endpoint }, error);
  }

  #tooLong(name: string, bytes: number): AgaroseError {
    const message = `${name} has ${bytes} bytes, and a Worker stores ${PUT_BYTES_MAX} at most: run \`agarose scrub\``;
    return new AgaroseError("STORE_FAILED", message, { region: this.region.name, bytes, limit: PUT_BYTES_MAX });
  }
}

/** The code of an S3 error; empty without one. */
function codeIn(xml: string): string {
  return /<Code>([^<]*)</.exec(xml)?.[1] ?? "";
}

function lateAnswer(): DOMException {
  return new DOMException(`no answer within ${ANSWER_MS_MAX / 1000} s`, "TimeoutError");
}

/** All bytes of a stream that must have exactly `bytes`. */
async function collect(parts: AsyncIterable<Uint8Array>, bytes: number): Promise<Uint8Array<ArrayBuffer>> {
  const content = new Uint8Array(bytes);
  let at = 0;
  for await (const part of parts) {
    if (at + part.length <= bytes) content.set(part, at);
    at += part.length;
  }
  if (at === bytes) return content;
  throw new AgaroseError("STORE_FAILED", `a body of ${bytes} bytes has ${at}`, { expected: bytes, actual: at });
}

const ROOT = "ListBucketResult";
/** XML 1.0 has no control characters, and S3 sends those of a key as references all the same. */
const LENIENT = { defaultXMLVersion: "1.1", forceXMLVersion: true } as const;

/** Texts by the names of their elements. */
type Fields = Record<string, string | undefined>;

/** Throws SOURCE_FAILED for anything else than such a page. */
export function listedPage(xml: string): ListedPage {
  const { fields, contents } = read(xml);
  const objects = contents.map(({ Key = "", Size = "", LastModified = "", ETag }) => {
    const listed = { name: Key, bytes: Number(Size), modifiedMs: Date.parse(LastModified) || 0 };
    return { ...listed, ...(ETag !== undefined && { etag: ETag }) };
  });
  const { IsTruncated, NextContinuationToken: next } = fields;
  return { objects, isTruncated: IsTruncated === undefined ? undefined : IsTruncated === "true", next };
}

function read(xml: string): { readonly fields: Fields; readonly contents: readonly Fields[] } {
  const parser = new SaxesParser(LENIENT);
  const fields: Fields = {};
  const contents: Fields[] = [];
  const path: string[] = [];
  let text = "";
  const onText = (part: string): void => void (text += part);
  parser.on("text", onText);
  parser.on("cdata", onText);
  parser.on("error", (error) => {
    throw new AgaroseError("SOURCE_FAILED", `a listing is not XML: ${error.message}`, {}, error);
  });
  parser.on("opentag", ({ name }) => {
    if (path.length === 0 && name !== ROOT) {
      throw new AgaroseError("SOURCE_FAILED", `a listing is not a ${ROOT}: ${xml.slice(0, 100)}`);
    }
    if (path.length === 1 && name === "Contents") contents.push({});
    path.push(name);
    text = "";
  });
  parser.on("closetag", ({ name }) => {
    path.pop();
    if (path.length === 1) fields[name] = text;
    if (path.length === 2 && path[1] === "Contents") contents.at(-1)![name] = text;
  });
  parser.write(xml).close();
  return { fields, contents };
}
