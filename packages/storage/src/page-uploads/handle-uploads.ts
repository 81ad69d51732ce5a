/**
 * Uploads from pages: the server decides and commits, and the bytes of large objects go from the page to the regions.
 *
 * | request                                   | what it does                                                        |
 * | ----------------------------------------- | ------------------------------------------------------------------- |
 * | POST /v1/uploads                          | begins an upload: JSON `{key, bytes, contentType?, token?}`         |
 * | GET /v1/uploads/TICKET                    | continues with it: new URLs, and which chunks are there               |
 * | POST /v1/uploads/TICKET?sha256=HEX        | commits it: the body is the hashes of the blocks of its chunks      |
 * | POST /v1/uploads/TICKET                   | stores an object that has no chunk URLs: the body is its content    |
 *
 * All that the server knows of an upload is in its ticket, and in the claim by which it begins: that keeps its chunks
 * from the garbage collector, and says once it was committed. Where a server dies before it says so, a page that
 * commits again puts the object again, as a client does that repeats a PUT without an answer.
 */
import { AgaroseError, explainError, toAgaroseError, type FetchedResponse } from "@agarose/core";
import {
  blockBytesOf,
  chunkBytes,
  chunkName,
  isCount,
  isRecord,
  isText,
  isTombstone,
  pageStripesOf,
  parseKey,
} from "@agarose/core/format";
import { readChecked } from "@agarose/core/sources";
import { storeNamed } from "../buckets/region-names.ts";
import { claimGeneration, findBegun, storeBegun } from "../commit/claim.ts";
import { LEASE_MS } from "../commit/lease.ts";
import { secretsOf } from "../encryption/secrets-of.ts";
import { chunksNeeded, draftOf, type Draft, type PutResult } from "../objects/put-object.ts";
import { adoptKept, putOverOrigin } from "../origin/read-through.ts";
import type { DeploymentParts } from "../parts.ts";
import { compareAge, surveyRegions } from "../regions/region-survey.ts";
import { settledSurvey } from "../regions/settled.ts";
import { bytesSource } from "../upload/file-source.ts";
import { CHUNK_OPTIONS } from "../upload/chunk-upload.ts";
import { mayCompress } from "../upload/compressed-source.ts";
import { headersOf } from "../upload/header-rules.ts";
import { describedAsStored } from "../upload/object-headers.ts";
import { commitUpload, leavesBytes, storedChunks } from "./commit-upload.ts";
import { checkBytesMax, checkSecret, opened, sealed, type UploadToken } from "./tokens.ts";
import { jsonIn } from "../config/json.ts";

/** The request of a page to store an object. */
export interface UploadWish {
  readonly key: string;
  readonly bytes: number;
  readonly contentType: string;
}

/** Options of `Deployment.uploads`. */
export interface UploadsOptions {
  /** Signs what pages hold: at least 32 characters, the same on every server. It never leaves them. */
  readonly secret: string;
  /** Whether a request without a token may store this. Its body has been read. Default: none may. */
  readonly authorize?: (request: Request, wish: UploadWish) => boolean | Promise<boolean>;
  /** The required prefix of keys. Default: any. */
  readonly prefix?: string;
  /** The most bytes of an object. */
  readonly bytesMax: number;
  /** How long an upload may take as a whole. A page that pauses for an hour loses it all the same. Default: a day. */
  readonly expiresMs?: number;
}

/** One chunk of an upload. */
export interface UploadChunk {
  /** Takes one PUT with the headers, of exactly `chunkBytes` bytes. */
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Whether its region has it in full. */
  readonly stored: boolean;
}

/** The answer that a page needs to upload. */
export interface UploadGrant {
  /** Names the upload in paths, and allows no other. */
  readonly ticket: string;
  /** How many milliseconds the ticket and the URLs last. */
  readonly lastsMs: number;
  /** How the page codes the object. Absent: it sends the content to the server. */
  readonly coded?: Pick<Draft, "k" | "m" | "bytes" | "stripeBytes" | "blockBytes"> & {
    /** How many chunks must be stored. */
    readonly needed: number;
    readonly chunks: readonly UploadChunk[];
  };
}

/** The content of a ticket. */
interface Ticket extends UploadWish, Pick<UploadToken, "upload" | "untilMs"> {
  /** When the whole upload ends, in milliseconds since 1970. */
  readonly endMs: number;
  /** The code, which must not change on the way. */
  readonly layout?: Pick<Draft, "k" | "m" | "stripeBytes" | "placement">;
}

const DAY_MS = 86_400_000;
/** The codes whose messages are for who runs the server. */
const HIDDEN: ReadonlySet<string> = new Set(["INTERNAL", "CONFIG_INVALID", "CREDENTIALS_REFUSED", "KEYS_OUTDATED"]);
/** S3 takes no longer object by one request. */
const PUT_BYTES_MAX = 5 * 1024 ** 3;
const WISH_BYTES_MAX = 16 * 1024;
const PATH = /\/v1\/uploads(?:\/([\w.-]+))?$/;

/**
 * Returns what answers the requests above. A failure is an answer too: `{"error": {code, message, details}}`.
 *
 * @throws CONFIG_INVALID naming the option.
 */
export function handleUploads(
  options: UploadsOptions,
  parts: DeploymentParts,
): (request: Request) => Promise<Response> {
  checkSecret(options.secret);
  checkBytesMax(options.bytesMax);
  const uploads = new Uploads(options, parts);
  return async (request) => {
    try {
      return Response.json(await uploads.answer(request), { headers: { "cache-control": "no-store" } });
    } catch (error) {
      const failure = shown(toAgaroseError(error));
      return Response.json({ error: failure }, { status: failure.httpStatus });
    }
  };
}

/** The part of a failure that a page may know: nothing of the server's files and keys. */
function shown(failure: AgaroseError): AgaroseError {
  const { code, message } = failure;
  if (code === "USAGE") return invalid(message);
  return HIDDEN.has(code) ? new AgaroseError(code, explainError(code)) : failure;
}

class Uploads {
  readonly #options: UploadsOptions;
  readonly #parts: DeploymentParts;

  constructor(options: UploadsOptions, parts: DeploymentParts) {
    this.#options = options;
    this.#parts = parts;
  }

  answer(request: Request): Promise<UploadGrant | PutResult> {
    const { pathname, searchParams } = new URL(request.url);
    const [, text] = PATH.exec(pathname) ?? [];
    const isPost = request.method === "POST";
    if (!PATH.test(pathname) || (!isPost && (request.method !== "GET" || text === undefined))) {
      throw invalid(`${request.method} ${pathname} is not a request for an upload`);
    }
    if (text === undefined) return this.#begin(request);
    const ticket = opened<Ticket>("ticket", text, this.#options.secret, this.#parts.nowMs());
    return isPost ? this.#commit(ticket, request, searchParams.get("sha256")) : this.#goOn(ticket);
  }

  async #begin(request: Request): Promise<UploadGrant> {
    const { token, ...wish } = await wishOf(request);
    const { key, bytes } = wish;
    const { expiresMs = DAY_MS, bytesMax, prefix = "" } = this.#options;
    const context = this.#parts;
    const nowMs = context.nowMs();
    parseKey(key);
    const upload = await this.#allowed(request, wish, token);
    if (!key.startsWith(prefix))
      throw forbidden(`${JSON.stringify(key)} does not begin with ${JSON.stringify(prefix)}`);
    if (bytes > bytesMax) throw refused(`the object has ${bytes} bytes, at most ${bytesMax} are allowed`);
    const { draft, isCoded } = await this.#draftOf(wish);
    const { k, m, stripeBytes, placement } = draft;
    const ticket: Ticket = {
      ...wish,
      upload,
      endMs: nowMs + expiresMs,
      untilMs: nowMs,
      ...(isCoded && { layout: { k, m, stripeBytes, placement } }),
    };
    const { generation, newest } = await surveyRegions(key, context);
    // Of another begin by the same token, chunks may be there already.
    const isCommitted = newest && !isTombstone(newest) && newest.upload === upload;
    if (isCommitted || (token !== undefined && (await findBegun(key, upload, context)))) throw usedUp(key);
    (await claimGeneration({ key, upload, newest: generation, begins: context.newUpload() }, context)).end();
    // The later writer sees the other claim. Two files of one upload would mix their chunks.
    if ((await findBegun(key, upload, context))?.isTwice !== false) throw usedUp(key);
    return this.#granted(ticket, []);
  }

  /** The id of the upload, if it may begin. */
  async #allowed(request: Request, wish: UploadWish, token: string | undefined): Promise<string> {
    const { secret, authorize } = this.#options;
    if (token === undefined) {
      if (await authorize?.(request, wish)) return this.#parts.newUpload();
      throw forbidden(`the app does not let this request store ${JSON.stringify(wish.key)}`);
    }
    const { key, bytesMax, upload } = opened<UploadToken>("token", token, secret, this.#parts.nowMs());
    if (key !== wish.key) {
      throw forbidden(`the token is for ${JSON.stringify(key)}, and not for ${JSON.stringify(wish.key)}`);
    }
    if (wish.bytes > bytesMax) throw refused(`the object has ${wish.bytes} bytes, the token allows ${bytesMax}`);
    return upload;
  }

  /** Whether the page codes the object. It cannot where the configuration wants what only the server does. */
  async #draftOf(wish: UploadWish): Promise<{ readonly draft: Draft; readonly isCoded: boolean }> {
    const { config } = this.#parts;
    const { key, bytes } = wish;
    const described = this.#describedOf(wish);
    const { draft } = draftOf(described, bytes, config);
    if (bytes <= config.stripeBytes) return { draft, isCoded: false };
    if (chunkBytes(draft) > PUT_BYTES_MAX) {
      throw refused(
        `a chunk of the object would have ${chunkBytes(draft)} bytes, at most ${PUT_BYTES_MAX} can be sent`,
      );
    }
    const wanted = (await secretsOf(config).forWriting(key)) ? "encryption" : "compress";
    if (wanted === "encryption" || mayCompress({ ...config, ...described }, bytes)) {
      throw refused(
        `\`${wanted}\` of the configuration covers ${JSON.stringify(key)}, and a page stores more than ` +
          `${config.stripeBytes} bytes as they are: send the file to a server that puts it`,
      );
    }
    return { draft, isCoded: true };
  }

  #describedOf({ key, contentType }: UploadWish) {
    return { key, ...describedAsStored({ contentType, headers: headersOf(key, this.#parts.config.headers) }) };
  }

  /** Makes a ticket of an upload that has begun last for another while. */
  async #goOn(given: Ticket): Promise<UploadGrant> {
    const { key, upload, endMs } = given;
    const context = this.#parts;
    if (endMs <= context.nowMs()) throw forbidden("the upload has taken too long: begin it again");
    const begun = await findBegun(key, upload, context);
    if (!begun || begun.isOver) throw usedUp(key);
    await storeBegun(key, upload, begun, context);
    return this.#granted(given, given.layout ? await storedChunks(this.#draftIn(given), upload, context) : []);
  }

  async #granted(given: Ticket, stored: readonly number[]): Promise<UploadGrant> {
    const { key, upload, endMs } = given;
    const context = this.#parts;
    const nowMs = context.nowMs();
    const ticket = { ...given, untilMs: Math.min(endMs, nowMs + LEASE_MS) };
    const lastsMs = ticket.untilMs - nowMs;
    const granted = { ticket: sealed("ticket", ticket, this.#options.secret), lastsMs };
    if (!given.layout) return granted;
    const draft = this.#draftIn(ticket);
    const { k, m, bytes, stripeBytes, blockBytes, placement } = draft;
    const options = { ...CHUNK_OPTIONS, bytes: chunkBytes(draft), ifNoneMatch: "*" } as const;
    const chunks = placement.map(async (region, chunk): Promise<UploadChunk> => {
      const store = storeNamed(context.stores, region);
      if (!store?.presignPut) throw refused(`region ${region} is not configured any more: begin the upload again`);
      const seconds = Math.ceil(lastsMs / 1000);
      const request = await store.presignPut(chunkName(key, upload, chunk), options, seconds);
      return { ...request, stored: stored.includes(chunk) };
    });
    const needed = chunksNeeded(context.config, draft);
    const code = { k, m, bytes, stripeBytes, blockBytes };
    return { ...granted, coded: { ...code, needed, chunks: await Promise.all(chunks) } };
  }

  #draftIn(ticket: Ticket): Draft {
    const shape = { ...ticket.layout!, bytes: ticket.bytes };
    const layout = { ...shape, blockBytes: blockBytesOf(shape) };
    const pageStripes = pageStripesOf(layout);
    return { ...this.#describedOf(ticket), ...layout, ...(pageStripes && { pageStripes }) };
  }

  async #commit(ticket: Ticket, request: Request, sha256: string | null): Promise<PutResult> {
    const { key, bytes, upload } = ticket;
    const context = this.#parts;
    const draft = ticket.layout && this.#draftIn(ticket);
    const body = await bodyOf(request, draft ? leavesBytes(draft) : bytes);
    const begun = await findBegun(key, upload, context);
    if (!begun || begun.isOver) return this.#committed(ticket, sha256);
    const stored = draft
      ? await this.#commitCoded(draft, upload, sha256, body, begun.generation)
      : await this.#put(ticket, body);
    // A committed upload is not a failure.
    await storeBegun(key, upload, { ...begun, isOver: true }, context).catch(() => {});
    return stored;
  }

  /** The result of an earlier request for the same commit, whose answer was lost. */
  async #committed({ key, upload }: Ticket, sha256: string | null): Promise<PutResult> {
    const { newest, regions } = await settledSurvey(key, this.#parts);
    if (!newest || isTombstone(newest) || newest.upload !== upload || newest.sha256 !== sha256) throw usedUp(key);
    const { version, generation, bytes, modified, placement, missing = [] } = newest;
    const content = { key, version, upload, generation, bytes, sha256, modified, placement };
    const without = regions.filter(({ record }) => !record || compareAge(record, newest) !== 0);
    const regionsWithoutManifest = without.map(({ store, problem }) => ({
      region: store.region.name,
      problem: problem?.message ?? "has another manifest, or none",
    }));
    return { ...content, outcome: without.length > 0 ? "kept" : "unchanged", regionsWithoutManifest, missing };
  }

  async #commitCoded(
    draft: Draft,
    upload: string,
    sha256: string | null,
    leaves: Uint8Array,
    begun: number,
  ): Promise<PutResult> {
    if (!isText(sha256, /^[\da-f]{64}$/)) throw invalid("sha256 is not the SHA-256 of the object in 64 hex digits");
    await adoptKept(draft.key, false, this.#parts);
    return commitUpload({ draft, upload, sha256, leaves }, begun, this.#parts);
  }

  #put(ticket: Ticket, content: Uint8Array): Promise<PutResult> {
    const object = { ...this.#describedOf(ticket), source: bytesSource(content), force: false, examine: true };
    return putOverOrigin(object, { ...this.#parts, newUpload: () => ticket.upload });
  }
}

async function wishOf(request: Request): Promise<UploadWish & { readonly token?: string }> {
  const text = new TextDecoder().decode(await bodyOf(request));
  const wish = jsonIn(text);
  if (!isRecord(wish)) throw invalid("the body is not a JSON object");
  const { key, bytes, contentType = "application/octet-stream", token } = wish;
  if (!isText(key)) throw invalid("key is not a text");
  if (!isCount(bytes)) throw invalid("bytes is not a count");
  if (!isText(contentType)) throw invalid("contentType is not a text");
  if (token !== undefined && !isText(token)) throw invalid("token is not a text");
  return { key, bytes, contentType, ...(token !== undefined && { token }) };
}

/** A body of exactly so many bytes, or of a few. */
async function bodyOf(request: Request, bytes?: number): Promise<Uint8Array> {
  const max = bytes ?? WISH_BYTES_MAX;
  const body = await readChecked(request as unknown as FetchedResponse, (read) => {
    if (read > max) throw invalid(`the body has ${read} bytes or more, ${bytes ?? `at most ${max}`} are expected`);
  });
  if (bytes === undefined || body.length === bytes) return body;
  throw invalid(`the body has ${body.length} bytes, ${bytes} are expected`);
}

function invalid(problem: string): AgaroseError {
  return new AgaroseError("REQUEST_INVALID", problem);
}

function forbidden(problem: string): AgaroseError {
  return new AgaroseError("FORBIDDEN", problem);
}

function refused(problem: string): AgaroseError {
  return new AgaroseError("UPLOAD_REFUSED", problem);
}

function usedUp(key: string): AgaroseError {
  return refused(`this upload of ${JSON.stringify(key)} is over, and is good for no other: begin one with a new token`);
}
