/**
 * A bucket through the AWS SDK.
 */
import { Readable } from "node:stream";
import { crc32 } from "node:zlib";
import { setTimeout as pause } from "node:timers/promises";
import {
  AbortMultipartUploadCommand,
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  DeleteObjectsCommand,
  GetObjectTaggingCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  S3ServiceException,
  UploadPartCommand,
  type CompletedPart,
  type ListObjectsV2CommandInput,
  type S3Client,
} from "@aws-sdk/client-s3";
import type { AgaroseError, ErrorCode, FetchedResponse } from "@agarose/core";
import { streamOf } from "@agarose/core/async";
import { mayKeepHeader } from "@agarose/core/format";
import type { RegionConfig } from "../config/config.ts";
import { checkedListing, PAGE_BYTES_MAX, type ListedPage } from "./checked-listing.ts";
import {
  limitAnswer,
  limitCredentials,
  mayRefuseAdditions,
  openClient,
  ORIGIN_DEFAULT,
  refusePages,
  sendPlainly,
  statusOf,
  storeFailure,
  waitForDescriptors,
  type S3StoreOptions,
} from "./s3-client.ts";
import { SmallRequests, type SmallAnswer } from "./small-requests.ts";
import { sendChecksummed, sendHashed } from "./streamed-body.ts";
import type { GetOptions, ListedObject, PresignedPut, PutBody, PutOptions, PutReceipt, Store } from "./store.ts";

/** Headers of an answer that readers look at, beside those that a manifest may carry. */
const KEPT_HEADERS: ReadonlySet<string> = new Set([
  "content-length",
  "content-range",
  "content-type",
  "etag",
  "last-modified",
  "x-amz-server-side-encryption",
]);
const DELETE_MAX = 1000;
/** S3 takes up to 5 GiB in one put, and 10,000 parts. */
const PART_BYTES = 1024 ** 3;
const PARTS_OF_PUT_MAX = 4;
/** Readers ask another region instead of the same one again, but a listing needs every region. */
const LIST_TRIES = 3;
const LIST_PAUSE_MS = 100;
/** A listing's page, a HEAD or a removal has so long, all tries and every byte of the answer included. */
const SMALL_REQUEST_MS_MAX = 30_000;

/** A bucket behind an S3 endpoint, through the AWS SDK. */
export class S3Store implements Store {
  readonly region: RegionConfig;
  readonly #client: S3Client;
  readonly #requests: SmallRequests;
  readonly #credentialsOrigin: string;
  /** Tries of a page by ourselves, where the SDK has one. */
  readonly #triesOfList: number;
  readonly #partBytes: number;
  readonly #readsTags: boolean;
  #takesTrailers: boolean;
  #takesChecksums: boolean;
  /** Whether the store removes many objects by one request. */
  #removesMany = true;

  constructor(region: RegionConfig, options: S3StoreOptions = {}) {
    this.region = region;
    this.#partBytes = options.partBytes ?? PART_BYTES;
    this.#readsTags = options.readsTags ?? false;
    this.#credentialsOrigin = options.credentialsOrigin ?? ORIGIN_DEFAULT;
    this.#client = openClient(region, options);
    this.#takesChecksums = region.checksums ?? true;
    this.#takesTrailers = this.#takesChecksums;
    limitCredentials(this.#client);
    limitAnswer(this.#client, PAGE_BYTES_MAX);
    refusePages(this.#client);
    waitForDescriptors(this.#client, options.onThrottle);
    this.#triesOfList = options.attempts === 1 ? LIST_TRIES : 1;
    sendPlainly(this.#client, () => this.#takesChecksums);
    if (options.onThrottle) this.#watchThrottling(options.onThrottle);
    this.#requests = new SmallRequests(this.#client, region);
  }

  async get(
    name: string,
    { range, ifMatch, signal }: GetOptions = {},
  ): Promise<FetchedResponse & { readonly headers: Headers }> {
    try {
      const asked = { ...(range && { range }), ...(ifMatch && { "if-match": ifMatch }) };
      const { status, headers: all, body } = await this.#requests.send({ method: "GET", name, headers: asked }, signal);
      const headers = await this.#described(name, all, signal).catch((error: unknown) => {
        body.destroy();
        throw error;
      });
      return { status, headers, body: webStreamOf(body) };
    } catch (error) {
      const failure = this.#failure(error, "SOURCE_FAILED", `for ${name}`);
      const status = statusOf(error);
      // A bucket that does not exist says nothing of the object: as absence, it would count as an answer.
      const isNoBucket = error instanceof Error && error.name === "NoSuchBucket";
      if (status === undefined || isNoBucket || failure.code === "CREDENTIALS_REFUSED") throw failure;
      return { status, headers: new Headers(), body: null };
    }
  }

  async head(name: string, signal?: AbortSignal): Promise<number | undefined> {
    return (await this.look(name, signal))?.bytes;
  }

  /** The listed entry of an object, and the headers of `get`, by a HEAD. Rejects as `head` does. */
  async look(name: string, signal?: AbortSignal): Promise<(ListedObject & { readonly headers: Headers }) | undefined> {
    return this.#small("SOURCE_FAILED", `for ${name}`, signal, async ({ abortSignal }) => {
      try {
        const { headers } = await this.#requests.send({ method: "HEAD", name }, abortSignal);
        const { "content-length": bytes = 0, "last-modified": modified = "", etag } = headers;
        return {
          name,
          bytes: Number(bytes),
          modifiedMs: Date.parse(modified) || 0,
          headers: await this.#described(name, headers, abortSignal),
          ...(etag !== undefined && { etag }),
        };
      } catch (error) {
        if (statusOf(error) === 404) return undefined;
        throw error;
      }
    });
  }

  /** The headers that readers use, and with `readsTags` the tags, in the header that an object is put with. */
  async #described(name: string, all: SmallAnswer["headers"], signal: AbortSignal | undefined): Promise<Headers> {
    const kept = Object.keys(all).filter((header) => KEPT_HEADERS.has(header) || mayKeepHeader(header));
    const headers = new Headers(kept.map((header) => [header, all[header] ?? ""]));
    if (!this.#readsTags || !Number(all["x-amz-tagging-count"])) return headers;
    const command = new GetObjectTaggingCommand({ Bucket: this.region.bucket, Key: name });
    const { TagSet = [] } = await this.#client.send(command, signal && { abortSignal: signal });
    const tags = new URLSearchParams(TagSet.map(({ Key = "", Value = "" }) => [Key, Value]));
    headers.set("x-amz-tagging", tags.toString());
    return headers;
  }

  async put(name: string, body: PutBody, options: PutOptions): Promise<PutReceipt> {
    try {
      if (body instanceof Uint8Array) return await this.#orPlainly(() => this.#sendBytes(name, body, options));
      const isLong = options.bytes > PARTS_OF_PUT_MAX * this.#partBytes;
      return await (isLong ? this.#sendParts(name, body, options) : this.#sendPut(name, body, options));
    } catch (error) {
      if (!(body instanceof Uint8Array) && refusesTrailers(error)) this.#takesTrailers = false;
      throw this.#failure(error, "STORE_FAILED", `to store ${name}`);
    }
  }

  async presignPut(name: string, options: PutOptions, seconds: number): Promise<PresignedPut> {
    try {
      const headers = headersOf(options);
      const length = { "content-length": String(options.bytes) };
      const url = await this.#requests.presign({ method: "PUT", name, headers: { ...headers, ...length } }, seconds);
      return { url, headers };
    } catch (error) {
      throw this.#failure(error, "CREDENTIALS_REFUSED", `a URL for ${name}`);
    }
  }

  async #sendBytes(name: string, body: Uint8Array, options: PutOptions): Promise<PutReceipt> {
    const checksum = Buffer.alloc(4);
    checksum.writeUInt32BE(crc32(body));
    const headers = {
      ...headersOf(options),
      "x-amz-sdk-checksum-algorithm": "CRC32",
      "x-amz-checksum-crc32": checksum.toString("base64"),
    };
    const answer = await this.#requests.send({ method: "PUT", name, headers, body }, options.signal);
    return { etag: answer.headers["etag"] };
  }

  async #sendPut(name: string, body: Readable, options: PutOptions): Promise<PutReceipt> {
    const command = new PutObjectCommand({
      Bucket: this.region.bucket,
      Key: name,
      Body: body,
      ContentLength: options.bytes,
      ContentType: options.contentType,
      ...(options.cacheControl && { CacheControl: options.cacheControl }),
      ...(options.ifNoneMatch && { IfNoneMatch: options.ifNoneMatch }),
      ...(options.ifMatch && { IfMatch: options.ifMatch }),
    });
    describe(command, options);
    const hash = this.#prepareStream(command, options.bytes, options.headers?.["content-encoding"] === undefined);
    const output = await this.#client.send(command, options.signal && { abortSignal: options.signal });
    if (hash && output.ServerSideEncryption === undefined) checkEtag(output.ETag, hash());
    return { etag: output.ETag };
  }

  /** Stores a stream that is too long for one put. Nothing is there before all parts are, and nothing if one fails. */
  async #sendParts(name: string, body: Readable, options: PutOptions): Promise<PutReceipt> {
    const own = options.signal && { abortSignal: options.signal };
    const object = { Bucket: this.region.bucket, Key: name };
    const create = new CreateMultipartUploadCommand({
      ...object,
      ContentType: options.contentType,
      ...(options.cacheControl && { CacheControl: options.cacheControl }),
      ...(this.#takesTrailers && { ChecksumAlgorithm: "CRC32" as const }),
    });
    describe(create, options);
    const { UploadId } = await this.#client.send(create, own);
    const upload = { ...object, UploadId };
    try {
      const nextPart = partsOf(body);
      const Parts: CompletedPart[] = [];
      for (let at = 0; at < options.bytes; at += this.#partBytes) {
        const bytes = Math.min(this.#partBytes, options.bytes - at);
        const PartNumber = Parts.length + 1;
        const command = new UploadPartCommand({ ...upload, PartNumber, Body: nextPart(bytes), ContentLength: bytes });
        const hash = this.#prepareStream(command, bytes);
        const { ETag, ChecksumCRC32, ServerSideEncryption } = await this.#client.send(command, own);
        if (hash && ServerSideEncryption === undefined) checkEtag(ETag, hash());
        Parts.push({ PartNumber, ETag, ...(ChecksumCRC32 && { ChecksumCRC32 }) });
      }
      const complete = new CompleteMultipartUploadCommand({ ...upload, MultipartUpload: { Parts } });
      return { etag: (await this.#client.send(complete, own)).ETag };
    } catch (error) {
      // Without this, the parts would stay, unseen by any listing.
      await this.#client
        .send(new AbortMultipartUploadCommand(upload), { abortSignal: AbortSignal.timeout(SMALL_REQUEST_MS_MAX) })
        .catch(() => {});
      throw error;
    }
  }

  /**
   * Sends a request, and once more without checksum headers if the store may have refused those. A store that takes the
   * second one is not sent them any more.
   */
  async #orPlainly<T>(send: () => Promise<T>): Promise<T> {
    if (!this.#takesChecksums) return send();
    try {
      return await send();
    } catch (error) {
      if (!mayRefuseAdditions(error)) throw error;
      this.#takesChecksums = false;
      try {
        const value = await send();
        this.#takesTrailers = false;
        return value;
      } catch (again) {
        this.#takesChecksums = true;
        throw mayRefuseAdditions(again) ? error : again;
      }
    }
  }

  /** Whether uploads carry checksum headers: true until the store has refused them. */
  get takesChecksums(): boolean {
    return this.#takesChecksums;
  }

  /** Of the SDK, which signs by it. */
  get clockAheadMs(): number {
    return this.#client.config.systemClockOffset;
  }

  /** Whether streams are sent with a checksum behind their bytes: true until the store has refused one. */
  get takesTrailers(): boolean {
    return this.#takesTrailers;
  }

  /**
   * Returns how to get the MD5 of what was sent, for a stream that carries no checksum: where the store takes none, and
   * where the content has its own coding, which stores confuse with that of a trailer.
   */
  #prepareStream(
    sent: PutObjectCommand | UploadPartCommand,
    bytes: number,
    isPlain = true,
  ): (() => string) | undefined {
    // Its additions to the request of a put fit that of a part.
    const command = sent as PutObjectCommand;
    if (!this.#takesTrailers || !isPlain) return sendHashed(command);
    sendChecksummed(command, bytes);
    return undefined;
  }

  /** Sees each try of a request, because the SDK reports a refusal only when it was the last. */
  #watchThrottling(onThrottle: () => void): void {
    this.#client.middlewareStack.add(
      (next) => async (args) => {
        try {
          return await next(args);
        } catch (error) {
          if (isThrottled(error)) onThrottle();
          throw error;
        }
      },
      { step: "deserialize", priority: "high", name: "watchThrottling" },
    );
  }

  /** @param pageMax of the objects in one answer. Default: as many as the store gives. */
  list(prefix: string, signal?: AbortSignal, after?: string, pageMax?: number): AsyncGenerator<ListedObject> {
    return checkedListing(this.region, { prefix, after }, (token) =>
      this.#listPage({ Prefix: prefix, StartAfter: after, ContinuationToken: token, MaxKeys: pageMax }, signal),
    );
  }

  async remove(names: readonly string[], signal?: AbortSignal): Promise<{ name: string; problem: string }[]> {
    const failed: { name: string; problem: string }[] = [];
    for (let at = 0; at < names.length; at += DELETE_MAX) {
      const batch = names.slice(at, at + DELETE_MAX);
      const Delete = { Objects: batch.map((Key) => ({ Key })), Quiet: true };
      const command = new DeleteObjectsCommand({ Bucket: this.region.bucket, Delete });
      try {
        if (!this.#removesMany) {
          await this.#removeEach(batch, failed, signal);
          continue;
        }
        const answer = await this.#small("STORE_FAILED", "to remove objects", signal, (own) =>
          this.#orPlainly(() => this.#client.send(command, own)),
        );
        for (const { Key = "", Code = "", Message = "" } of answer.Errors ?? []) {
          failed.push({ name: Key, problem: `${Code} ${Message}` });
        }
      } catch (error) {
        if (isUnknownRequest(error)) {
          // Some stores remove one object at a time only.
          this.#removesMany = false;
          await this.#removeEach(batch, failed, signal);
          continue;
        }
        const problem = (error as AgaroseError).message;
        failed.push(...batch.map((name) => ({ name, problem })));
      }
    }
    return failed;
  }

  async #removeEach(
    names: readonly string[],
    failed: { name: string; problem: string }[],
    signal: AbortSignal | undefined,
  ): Promise<void> {
    for (const name of names) {
      try {
        await this.#remove(name, {}, signal);
      } catch (error) {
        failed.push({ name, problem: (error as AgaroseError).message });
      }
    }
  }

  async removeMatching(name: string, etag: string, signal?: AbortSignal): Promise<void> {
    await this.#remove(name, { "if-match": etag }, signal);
  }

  #remove(name: string, headers: Readonly<Record<string, string>>, signal: AbortSignal | undefined): Promise<unknown> {
    return this.#small("STORE_FAILED", `to remove ${name}`, signal, ({ abortSignal }) =>
      this.#requests.send({ method: "DELETE", name, headers }, abortSignal),
    );
  }

  close(): void {
    this.#client.destroy();
  }

  async #listPage(
    page: Omit<ListObjectsV2CommandInput, "Bucket">,
    signal: AbortSignal | undefined,
  ): Promise<ListedPage> {
    const command = new ListObjectsV2Command({ Bucket: this.region.bucket, ...page });
    const {
      Contents = [],
      IsTruncated: isTruncated,
      NextContinuationToken: next,
    } = await this.#small("SOURCE_FAILED", `to list ${page.Prefix}`, signal, async (own) => {
      for (let tried = 1; ; tried++) {
        try {
          return await this.#client.send(command, own);
        } catch (error) {
          if (tried >= this.#triesOfList || !isTransient(error)) throw error;
          await pause(LIST_PAUSE_MS * tried, undefined, { signal: own.abortSignal });
        }
      }
    });
    const objects = Contents.map(({ Key = "", Size = 0, LastModified, ETag }) => {
      const listed = { name: Key, bytes: Size, modifiedMs: LastModified?.getTime() ?? 0 };
      return { ...listed, ...(ETag !== undefined && { etag: ETag }) };
    });
    return { objects, isTruncated, next };
  }

  /** Runs a request whose answer is small, within a time that holds even where a region drips. */
  async #small<T>(
    code: ErrorCode,
    what: string,
    signal: AbortSignal | undefined,
    run: (own: { readonly abortSignal: AbortSignal }) => Promise<T>,
  ): Promise<T> {
    const late = AbortSignal.timeout(SMALL_REQUEST_MS_MAX);
    try {
      return await run({ abortSignal: AbortSignal.any([late, ...(signal ? [signal] : [])]) });
    } catch (error) {
      const isLate = late.aborted && !signal?.aborted;
      const cause = isLate ? new Error(`no whole answer within ${SMALL_REQUEST_MS_MAX} ms`) : error;
      throw this.#failure(cause, code, what);
    }
  }

  #failure(error: unknown, code: ErrorCode, what: string): AgaroseError {
    return storeFailure(error, code, what, this.region, this.#credentialsOrigin);
  }
}

/** Makes a request of the SDK carry the headers that it has no fields for. */
function describe(sent: PutObjectCommand | CreateMultipartUploadCommand, { headers }: PutOptions): void {
  const command = sent as PutObjectCommand;
  command.middlewareStack.add(
    (next) => (args) => {
      Object.assign((args.request as { readonly headers: object }).headers, headers);
      return next(args);
    },
    { step: "build", name: "describingHeaders" },
  );
}

function headersOf({ contentType, cacheControl, headers, ifNoneMatch, ifMatch }: PutOptions): Record<string, string> {
  return {
    ...headers,
    "content-type": contentType,
    ...(cacheControl && { "cache-control": cacheControl }),
    ...(ifNoneMatch && { "if-none-match": ifNoneMatch }),
    ...(ifMatch && { "if-match": ifMatch }),
  };
}

/** Whether a store refused a streamed put because of the checksum behind its bytes. */
function refusesTrailers(error: unknown): boolean {
  if (!(error instanceof S3ServiceException)) return false;
  const status = error.$metadata.httpStatusCode;
  return status === 501 || (status === 400 && /trail|checksum|aws-chunked|STREAMING-UNSIGNED/i.test(error.message));
}

/** Whether a store has no such operation. */
function isUnknownRequest(error: unknown): boolean {
  const { status } = (error as AgaroseError).details;
  return status === 405 || status === 501;
}

/** Whether the same request may succeed a moment later: a server between failed, or a connection ended. */
function isTransient(error: unknown): boolean {
  const status = statusOf(error);
  if (status !== undefined) return status >= 500 && status !== 501;
  return /^(ECONNRESET|EPIPE)$/.test((error as NodeJS.ErrnoException).code ?? "");
}

/** Whether a store asks for fewer requests. */
function isThrottled(error: unknown): boolean {
  if (!(error instanceof S3ServiceException)) return false;
  const status = error.$metadata.httpStatusCode;
  return (
    status === 503 || status === 429 || /^(SlowDown|Throttling|TooManyRequests|RequestLimitExceeded)/.test(error.name)
  );
}

/** Compares an ETag with the MD5 of what was sent. ETags of another form say nothing about the bytes. */
function checkEtag(etag: string | undefined, md5: string): void {
  const hex = etag?.replaceAll('"', "").toLowerCase() ?? "";
  if (/^[\da-f]{32}$/.test(hex) && hex !== md5) throw new Error(`stored bytes have MD5 ${hex}, sent were ${md5}`);
}

/** `Readable.toWeb` would copy every part. */
function webStreamOf(body: Readable): ReadableStream<Uint8Array> {
  const parts: AsyncIterator<Uint8Array> = body[Symbol.asyncIterator]();
  return streamOf(
    () => parts.next(),
    () => void body.destroy(),
  );
}

/** Cuts a stream into parts of known length, which are read one after the other. It holds one buffer. */
function partsOf(body: Readable): (bytes: number) => Readable {
  const buffers = body[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
  let held: Buffer = Buffer.alloc(0);
  async function* take(bytes: number): AsyncGenerator<Buffer> {
    for (let left = bytes; left > 0;) {
      if (held.length === 0) {
        const { done, value } = await buffers.next();
        if (done) throw new Error(`the stream ended ${left} bytes early`);
        held = value;
      }
      const part = held.subarray(0, left);
      held = held.subarray(part.length);
      left -= part.length;
      yield part;
    }
  }
  return (bytes) => Readable.from(take(bytes), { objectMode: false });
}
