/**
 * One operation of a schedule: what its process calls, and what the model hears of it.
 */
import { createHash, hash } from "node:crypto";
import { AgaroseError, toAgaroseError, type Codec } from "@agarose/core";
import type { Code, Manifest } from "@agarose/core/format";
import type { EncoderPool } from "@agarose/ec-wasm/encoder-pool";
import type { BatchLease } from "../../src/commit/batches.ts";
import { keyGroups } from "../../src/listing/key-groups.ts";
import { etagOfAll } from "../../src/listing/listed-object.ts";
import type { RemoveResult } from "../../src/objects/remove-object.ts";
import type { ExpireOutcome } from "../../src/maintenance/expire-objects.ts";
import type { Config } from "../../src/config/config.ts";
import type { RepairOutcome } from "../../src/repair/repair-outcome.ts";
import type { DeploymentParts } from "../../src/parts.ts";
import type { GarbageUpload } from "../../src/maintenance/gc/search.ts";
import type { PutObject, PutResult } from "../../src/objects/put-object.ts";
import type { Source } from "../../src/upload/file-source.ts";
import { Breaker } from "../../src/regions/ask-regions.ts";
import type { FenceContext } from "../../src/commit/fence.ts";
import type { Store } from "../../src/buckets/store.ts";
import type { Engines } from "./engines.ts";
import type { HistoryEntry } from "./linearizability.ts";
import { Violation, type Intent, type Model, type Result } from "./model.ts";
import { PageServer, tokenOf, uploadOf, type Page } from "./page.ts";
import { keyIdOf, type Machine, type Publisher } from "./world/publisher.ts";
import type { Process } from "./world/process.ts";
import type { Operation } from "./schedules/schedule.ts";

/** The context of an operation. */
export interface OperationContext {
  readonly engines: Engines;
  readonly config: Config;
  /** The stores of this process, for writers and for readers. */
  readonly stores: { readonly writing: readonly Store[]; readonly reading: readonly Store[] };
  readonly codec: () => Promise<Codec>;
  readonly encoder: () => Promise<EncoderPool>;
  readonly process: Process;
  /** Signs, and trusts no one else. Undefined in unsigned mode. */
  readonly publisher: Publisher | undefined;
  /** The part of a rotation that this machine lacks. Undefined where all machines have one configuration. */
  readonly machine: Machine | undefined;
  readonly model: Model;
  /** Whether every region has answered everything since `fromMs`. */
  readonly isHealthySince: (fromMs: number) => boolean;
  readonly note: (text: string) => void;
  /** The next commits of pages, by their operations. */
  readonly pages: Map<number, Page & { readonly sha256: string; readonly fromMs: number }>;
  /** The claims that the app has signed, by the number of the token. */
  readonly tokens: Map<number, string>;
  /** Operations of clients, and their answers. */
  readonly history: HistoryEntry[];
  /** A moment that is later than all before. */
  readonly tick: () => number;
}

export const KEY = "folder/object";
const HOUR_MS = 3_600_000;
const PUT_CODES_OF_OTHERS: ReadonlySet<string> = new Set([
  "NO_QUORUM",
  "STORE_FAILED",
  "REPLACED_MEANWHILE",
  "WRITE_UNCERTAIN",
  "NOT_ENOUGH_CHUNKS",
  "READ_TIMEOUT",
  "SOURCE_FAILED",
  "CLOCKS_DISAGREE",
  "READ_UNCERTAIN",
  "MANIFEST_UNTRUSTED",
  "CONFIG_INVALID",
  "KEYS_OUTDATED",
  "UPLOAD_REFUSED",
  "FORBIDDEN",
]);
/** Nobody knows whether such a write has happened. */
const UNCERTAIN: ReadonlySet<string> = new Set(["WRITE_UNCERTAIN", "UPLOAD_REFUSED"]);
/** A restore finds nothing to bring back, or none of a removed object. */
const NOTHING_CODES: ReadonlySet<string> = new Set(["OBJECT_NOT_FOUND", "USAGE"]);

/** The bytes of a content: two stripes when it is odd. */
export function contentOf(content: number): Uint8Array {
  return Buffer.from(`content ${content} `.repeat(content % 2 === 0 ? 1 : 3));
}

/** The SHA-256 of a content, in hex. */
export function sha256Of(content: number): string {
  return hash("sha256", contentOf(content));
}

/** Runs an operation to its end. Rejects with a Violation when it breaks a promise itself. */
export async function runOperation(operation: Operation, context: OperationContext): Promise<void> {
  switch (operation.verb) {
    case "put":
      return write({ verb: "put", sha256: sha256Of(operation.content) }, () => put(operation, context), context);
    case "bulk": {
      const { content } = operation;
      const intent: Intent = content === undefined ? { verb: "rm" } : { verb: "put", sha256: sha256Of(content) };
      return write(intent, () => bulk(operation, context), context);
    }
    case "rm":
      return write({ verb: "rm" }, () => remove(context), context);
    case "upload":
      return uploadOnPage(operation, context);
    case "commit":
      return commit(operation.of, context);
    case "expire":
      return expire(operation, context);
    case "restore":
      return restore(operation, context);
    case "recode":
      return recode(operation, context);
    case "rotate":
      return rotate(context);
    case "get":
      return read(operation, context);
    case "read":
      return readStrongly(operation, context);
    case "replace":
      return replace(operation, context);
    default:
      return maintain(operation, context);
  }
}

/** A page's upload. To the model, its commit is a put. */
async function uploadOnPage(operation: Operation & { verb: "upload" }, context: OperationContext): Promise<void> {
  const { process, model, note, pages, tokens } = context;
  const { content, token, pauseMs = 0, isAbandoned = false } = operation;
  const server = new PageServer(storing(context), context.engines);
  const bytes = contentOf(content);
  if (token !== undefined && !tokens.has(token)) tokens.set(token, tokenOf(KEY, token, process.nowMs()));
  const wish = { key: KEY, ...(token !== undefined && { token: tokens.get(token) }) };
  const grant = await chosen(() => server.begin(wish, bytes), context);
  if (!grant) return;
  model.beginUpload(uploadOf(grant));
  note(`began upload ${uploadOf(grant).slice(0, 4)}`);
  const fromMs = process.clock.now();
  const page = await server.send(grant, bytes);
  if (isAbandoned) return;
  await sleep(process, pauseMs);
  pages.set(process.id, { ...page, sha256: sha256Of(content), fromMs });
  await commit(process.id, context);
}

async function commit(of: number, context: OperationContext): Promise<void> {
  const { process, model, pages, engines, note, isHealthySince } = context;
  const page = pages.get(of);
  if (!page) return note("the page has nothing to commit");
  const run = async (): Promise<Result> => {
    model.nameUpload(process.id, page.upload);
    const done = await new PageServer(storing(context), engines).commit(page).catch((error: unknown) => {
      const isInTime = process.clock.now() - page.fromMs < HOUR_MS && isHealthySince(page.fromMs) && !process.hasSlept;
      if (!isInTime || toAgaroseError(error).code !== "STORE_FAILED") throw error;
      throw new Violation(`chunks of a page that came back within the hour are gone: ${(error as Error).message}`);
    });
    note(`committed upload ${page.upload.slice(0, 4)}`);
    return putResult(done, context);
  };
  await write({ verb: "put", sha256: page.sha256 }, run, context);
}

/** The end of a rotation: the first key is out of force once it has resolved. */
async function rotate(context: OperationContext): Promise<void> {
  const { engines, model, note } = context;
  const fenced = fenceContext(context)!;
  try {
    await engines.announce({ signers: [keyIdOf("next")], signer: keyIdOf("next") }, fenced);
    await engines.untilFenced(fenced);
  } catch (error) {
    const { code } = toAgaroseError(error);
    if (!PUT_CODES_OF_OTHERS.has(code)) throw error;
    note(code);
    return;
  }
  note("rotated");
  model.retireFirstKey();
}

async function write(
  intent: Intent,
  run: () => Promise<Result>,
  context: OperationContext,
  condition?: Condition,
): Promise<void> {
  const { model, process, note, history, tick, machine } = context;
  const kind = intent.verb === "rm" ? "remove" : "put";
  const { expected, isRefused = () => false } = condition ?? {};
  const entry = begin({ kind, value: intent.sha256, expected }, context);
  model.startWriter(process.id, intent);
  const result = await run().catch((error: unknown): Result => {
    if (error instanceof Violation) throw error;
    const { code, message } = toAgaroseError(error);
    return { state: "failed", code, message };
  });
  note(
    result.state === "done" ? `acknowledged as generation ${result.generation}` : JSON.stringify(result).slice(0, 200),
  );
  model.endWriter(process.id, result, process.clock.now());
  if (result.state === "done" && (machine === "old" || machine === "late")) {
    model.checkFirstKey(process.id, result.generation);
  }
  if (result.state === "failed" && UNCERTAIN.has(result.code)) return;
  Object.assign(entry, { end: tick(), outcome: isRefused() ? "refused" : "done" });
  if (result.state === "failed" && !isRefused()) history.splice(history.indexOf(entry), 1);
}

/** Of a put: what it may replace, and whether it found something else. */
interface Condition {
  readonly expected: { readonly value: string | undefined };
  readonly isRefused: () => boolean;
}

/** Notes that a client starts something. Until it is told how that ended, it is open. */
function begin(
  what: Pick<HistoryEntry, "kind" | "value" | "expected">,
  { history, tick }: OperationContext,
): HistoryEntry {
  const entry: HistoryEntry = { ...what, start: tick(), end: Number.POSITIVE_INFINITY, outcome: "open" };
  history.push(entry);
  return entry;
}

async function readStrongly({ reads, pauseMs }: Operation & { verb: "read" }, context: OperationContext) {
  for (let n = 0; n < reads; n++) {
    if (n > 0) await sleep(context.process, pauseMs);
    await readWhole(context);
  }
}

/** The version of a strong read; undefined where it fails. */
async function readWhole(context: OperationContext): Promise<{ readonly value: string | undefined } | undefined> {
  const { engines, stores, history, tick, note } = context;
  const entry = begin({ kind: "read" }, context);
  try {
    const found = await engines.readManifest(KEY, { ...storing(context), stores: stores.reading });
    note(`strongly read generation ${found.generation}`);
    entry.value = found.sha256;
  } catch (error) {
    const { code, message } = toAgaroseError(error);
    note(`${code} ${message.slice(0, 160)}`);
    if (code !== "OBJECT_NOT_FOUND") {
      if (!PUT_CODES_OF_OTHERS.has(code)) throw error;
      history.splice(history.indexOf(entry), 1);
      return undefined;
    }
  }
  Object.assign(entry, { end: tick(), outcome: "done" });
  return { value: entry.value };
}

async function replace({ content }: Operation & { verb: "replace" }, context: OperationContext): Promise<void> {
  const expected = await readWhole(context);
  if (!expected) return;
  let isRefused = false;
  const onlyIf = (current: Manifest | undefined): void => {
    if (current?.sha256 === expected.value) return;
    isRefused = true;
    throw new AgaroseError("REPLACED_MEANWHILE", "the condition does not hold");
  };
  const run = () => put({ verb: "put", content }, context, onlyIf);
  await write({ verb: "put", sha256: sha256Of(content) }, run, context, { expected, isRefused: () => isRefused });
}

async function put(
  { content, isAbsent = false, readMs = 0 }: Operation & { verb: "put" },
  context: OperationContext,
  onlyIf?: PutObject["onlyIf"],
): Promise<Result> {
  const source = sourceOf(content, readMs, context.process);
  const described = { contentType: "text/plain", headers: {}, force: false, isAbsent };
  const object = { key: KEY, source, ...described, ...(onlyIf && { onlyIf }) };
  return putResult(await context.engines.putObject(object, naming(context)), context);
}

/** As a put or a removal of many: the key is one of several in a batch, and the last one ends it. */
async function bulk(
  { content, lists = false }: Operation & { verb: "bulk" },
  context: OperationContext,
): Promise<Result> {
  const { engines, process, note } = context;
  const options = naming(context);
  const etag = lists ? await listedEtag(options).catch(() => undefined) : undefined;
  const keys = await engines.batchKeys([{ key: "folder/a" }, { key: KEY, etag }, { key: "folder/z" }], options);
  const seen = keys.find(({ key }) => key === KEY);
  const batch = await engines.claimBatch(keys, options).catch(() => undefined);
  const lease = batch?.take(KEY);
  note(lease ? `claimed generation ${lease.generation} in a batch` : "claims nothing in a batch");
  const act = async (own: BatchLease | undefined): Promise<Result> => {
    const claim = own && { survey: seen!.survey, take: async () => own };
    if (content === undefined) return removeResult(await engines.removeObject(KEY, options, { claim }), context);
    const described = { contentType: "text/plain", headers: {}, force: false, isAbsent: !lists, etag, claim };
    const object = { key: KEY, source: sourceOf(content, 0, process), ...described };
    return putResult(await engines.putObject(object, options), context);
  };
  try {
    return await act(lease);
  } catch (error) {
    if (!lease || toAgaroseError(error).code !== "REPLACED_MEANWHILE") throw error;
    return await act(undefined);
  } finally {
    await batch?.end();
  }
}

/** The ETag that all regions list. */
async function listedEtag(options: DeploymentParts): Promise<string | undefined> {
  const { stores, signal, clock } = options;
  for await (const group of keyGroups(stores, KEY, signal, { kinds: ["manifests"], clock })) {
    return etagOfAll(group, options);
  }
  return undefined;
}

/** To the model, a restore is a put of what the version that it has chosen holds. */
async function restore({ isRemoved }: Operation & { verb: "restore" }, context: OperationContext): Promise<void> {
  const { engines, note } = context;
  const options = naming(context);
  // Those of many look at a listing first.
  const etag = isRemoved ? await listedEtag(options).catch(() => undefined) : undefined;
  const found = await chosen(() => engines.findRestorable(KEY, { isRemoved, etag }, options), context);
  if (!found) return;
  const run = async (): Promise<Result> => {
    const done = await engines.restoreVersion(found, options);
    note(`restored, ${done.outcome}`);
    return putResult(done, context);
  };
  await write({ verb: "put", sha256: found.kept.sha256, seen: found.survey.newest?.generation ?? 0 }, run, context);
}

/**
 * To the model, a put of what the key holds. The code has one data chunk less, or two. With `isDrained` a chunk less in
 * all, because the first region drains.
 */
async function recode({ isDrained = false }: Operation & { verb: "recode" }, context: OperationContext): Promise<void> {
  const { engines, note, config } = context;
  const { k, m } = config.code as Code;
  const code = k === 1 ? { k: 2, m: m - 1 } : { k: k - 1, m: m + 1 };
  const drained = {
    code: k === 1 ? { k, m: m - 1 } : { k: k - 1, m },
    regions: config.regions.map((region, index) => ({ ...region, drain: index === 0 })),
  };
  const options = { ...naming(context), config: { ...config, ...(isDrained ? drained : { code }) } };
  const before = await chosen(() => engines.findRecodable(KEY, options), context);
  if (!before) return;
  const run = async (): Promise<Result> => {
    const done = await engines.recodeVersion(before, options);
    note(`recoded, ${done.outcome}`);
    return putResult(done, context);
  };
  await write({ verb: "put", sha256: before.sha256, seen: before.generation }, run, context);
}

/** The objects that a writer decides to restore; undefined for none. */
async function chosen<T>(find: () => Promise<T>, { note }: OperationContext): Promise<T | undefined> {
  try {
    return await find();
  } catch (error) {
    const { code, message } = toAgaroseError(error);
    if (!PUT_CODES_OF_OTHERS.has(code) && !NOTHING_CODES.has(code)) throw error;
    note(`${code} ${message.slice(0, 160)}`);
    return undefined;
  }
}

/** The parts of a writer of whose uploads the model hears. */
function naming(context: OperationContext): DeploymentParts {
  return { ...storing(context), newUpload: uploadNamer(context) };
}

function uploadNamer({ process, model }: OperationContext): () => string {
  return () => {
    const upload = process.newUpload();
    model.nameUpload(process.id, upload);
    return upload;
  };
}

function putResult(done: PutResult, context: OperationContext): Result {
  context.note(done.outcome);
  return {
    state: "done",
    generation: done.generation,
    regionsWithout: indices(
      done.regionsWithoutManifest.map(({ region }) => region),
      context,
    ),
  };
}

async function remove(context: OperationContext): Promise<Result> {
  return removeResult(await context.engines.removeObject(KEY, storing(context)), context);
}

function removeResult(done: RemoveResult | undefined, context: OperationContext): Result {
  if (!done) return { state: "nothing" };
  const regions = done.regionsWithoutTombstone.map(({ region }) => region);
  return { state: "done", generation: done.generation, regionsWithout: indices(regions, context) };
}

/** To the model, an rm that must leave what is younger than the rule says. */
async function expire({ shard }: Operation & { verb: "expire" }, context: OperationContext): Promise<void> {
  const { engines, config, note } = context;
  const run = async (): Promise<Result> => {
    const outcomes: ExpireOutcome[] = [];
    const onOutcome = async (outcome: ExpireOutcome): Promise<void> => void outcomes.push(outcome);
    await chosen(() => engines.expireObjects({ onWarning: note, onOutcome }, { ...storing(context), shard }), context);
    const [own] = outcomes;
    if (own) note(`${own.outcome} by expire`);
    if (own?.outcome === "failed") throw own.error;
    if (own?.outcome !== "removed") return { state: "nothing" };
    const regions = own.regionsWithoutTombstone.map(({ region }) => region);
    return { state: "done", generation: own.generation, regionsWithout: indices(regions, context) };
  };
  await write({ verb: "rm", ageMs: config.expire[0]?.time }, run, context);
}

/** Operations that change nothing for readers. */
async function maintain(operation: Operation, context: OperationContext): Promise<void> {
  const { engines, note, stores } = context;
  const walking = { ...storing(context), ...("shard" in operation && { shard: operation.shard }) };
  try {
    if (operation.verb === "repair") {
      const { before, after, ...written } = await engines.repairObject(KEY, storing(context), {
        quick: operation.quick,
      });
      note(`repaired: ${JSON.stringify({ before: before.sound, after: after.sound, ...written })}`);
    } else if (operation.verb === "scrub") {
      const outcomes: string[] = [];
      const onRepair = async (object: RepairOutcome): Promise<void> => {
        outcomes.push(object.outcome === "failed" ? `failed ${object.error.code}` : object.outcome);
      };
      const deep = operation.isDeep ? { share: 1 } : {};
      const { found, left } = await engines.scrubObjects({ deep, onWarning: note, onRepair }, walking);
      note(`scrubbed: ${JSON.stringify({ found, left, outcomes })}`);
    } else if (operation.verb === "heat") {
      const manifest = await engines.readManifest(KEY, storing(context));
      const placement = manifest.extra ? [] : context.config.regions.slice(0, 2).map(({ name }) => name);
      await engines.storeExtra(manifest, placement, storing(context));
      note(`${placement.length} extra chunks`);
    } else if (operation.verb === "rename") {
      if (await engines.renameRegions(KEY, storing(context))) note("renamed");
    } else if (operation.verb === "apply") {
      note((await engines.applyKeys(KEY, { ...storing(context), acceptsNewest: true })) ?? "removed");
    } else if (operation.verb === "gc") {
      const uploads: string[] = [];
      const search = {
        prefix: "",
        olderThanMs: (operation.olderThanHours ?? 24) * HOUR_MS,
        removes: true,
        onUpload: ({ upload, state }: GarbageUpload) => uploads.push(`${upload.slice(0, 4)} ${state}`),
      };
      await engines.collectGarbage(search, walking);
      note(uploads.join(", ") || "no garbage");
    } else {
      const verdict = await engines.verifyObject(KEY, { ...storing(context), stores: stores.reading });
      note(`verified: ${verdict.sound ? "sound" : "damaged"}`);
    }
  } catch (error) {
    const { code, message } = toAgaroseError(error);
    // Where nothing else is left, what a region forges is all that there is to report.
    const isNothing = operation.verb === "heat" && code === "OBJECT_NOT_FOUND";
    if (!PUT_CODES_OF_OTHERS.has(code) && code !== "MANIFEST_UNTRUSTED" && !isNothing) throw error;
    note(`${code} ${message.slice(0, 160)}`);
  }
}

/** A client: it remembers the newest generation that it has seen. */
async function read(operation: Operation & { verb: "get" }, context: OperationContext): Promise<void> {
  const { model, process, note, isHealthySince } = context;
  let seen = 0;
  for (let n = 0; n < operation.reads; n++) {
    const start = model.startRead();
    const fromMs = process.clock.now();
    try {
      const { manifest, sha256 } = await readOnce(operation.pauseMs, seen, context);
      const { generation, upload } = manifest;
      note(`read generation ${generation}, upload ${upload.slice(0, 4)}`);
      model.endRead(
        start,
        { state: "read", generation, upload, sha256 },
        seen,
        isHealthySince(fromMs) && !process.hasSlept,
      );
      seen = Math.max(seen, generation);
    } catch (error) {
      const { code, message, name } = toAgaroseError(error);
      if (error instanceof Violation) throw error;
      note(`${name} ${code} ${message.slice(0, 160)}`);
      model.endRead(start, { state: "failed", code, message }, seen, isHealthySince(fromMs) && !process.hasSlept);
    }
    if (n + 1 < operation.reads) await sleep(process, operation.pauseMs + 1);
  }
}

async function readOnce(
  pauseMs: number,
  generationMin: number,
  own: OperationContext,
): Promise<{ manifest: Manifest; sha256: string }> {
  const { engines, stores, process } = own;
  const reading = { ...storing(own), stores: stores.reading };
  const manifest = await engines.readManifest(KEY, reading, { consistency: "eventual", generationMin });
  await sleep(process, pauseMs);
  const hasher = createHash("sha256");
  await engines.getObject(manifest, undefined, async (part) => hasher.update(part), reading);
  return { manifest, sha256: hasher.digest("hex") };
}

/** The parts of this process. */
export function storing(context: OperationContext): DeploymentParts {
  const { config, stores, process, publisher, codec, encoder } = context;
  const { nowMs, clock, random, newUpload } = process;
  const own = fenceContext(context);
  const fence = own && new context.engines.Fence(own);
  const { publicKeys: _keys, ...keys } = publisher ?? {};
  const usual = { config, stores: stores.writing, signal: process.signal, nowMs, clock, random, newUpload };
  const parts = context.engines.writeContextOf({ ...usual, ...keys, ...(fence && { fence }) });
  return { ...parts, codec, encoder, widths: new Set() };
}

/** Undefined where no schedule rotates keys. */
function fenceContext({ config, stores, process, publisher, machine }: OperationContext): FenceContext | undefined {
  if (!machine || !publisher) return undefined;
  const { signal, clock } = process;
  const { sign, trust, publicKeys } = publisher;
  const own = { ...config, publicKeys: [...publicKeys] };
  return { config: own, stores: stores.writing, signal, clock, breaker: new Breaker(clock), sign, trust };
}

function indices(names: readonly string[], { config }: OperationContext): number[] {
  return names.map((name) => config.regions.findIndex((region) => region.name === name));
}

function sleep({ clock }: Process, ms: number): Promise<void> {
  return new Promise((resolve) => void clock.after(ms, resolve));
}

function sourceOf(content: number, readMs: number, process: Process): Source {
  const bytes = contentOf(content);
  return {
    open: async () => ({
      read: async (target, position) => {
        if (readMs > 0) await sleep(process, readMs);
        const part = bytes.subarray(position, position + target.length);
        target.set(part);
        return part.length;
      },
      close: async () => {},
    }),
  };
}
