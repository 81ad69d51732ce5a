/**
 * Regions, PoPs and objects in memory, on a virtual clock: what a client sees of the world, with faults to switch on.
 */
import { createHash } from "node:crypto";
import type { FetchInit, FetchPort, FetchedResponse } from "@agarose/core";
import {
  BUNDLE_CONTENT_TYPE,
  chunkNameOf,
  chunkRegions,
  encodeFrame,
  encodeHashes,
  encodeManifest,
  encodePlan,
  manifestName,
  objectUrl,
  roundRobin,
  stripeCount,
  stripeShape,
  versionText,
  type Encryption,
  type Gzip,
  type Manifest,
  type Plan,
  type PlanPeer,
} from "@agarose/core/format";
import { parseRange } from "@agarose/core/http";
import { piecesOf, type Piece } from "@agarose/core/read";
import { PEER_CHUNK_PREFIX } from "@agarose/core/sources";
import { loadCodec } from "@agarose/ec-wasm";
import type { ReadEvent } from "../src/events/read-events.ts";
import { parseConfig } from "../src/common/config.ts";
import { ObjectClient } from "../src/client/object-client.ts";
import type { ObjectStore } from "../src/client/object-store.ts";
import { VirtualClock } from "./virtual-clock.ts";

export interface FakeRegion {
  readonly name: string;
  readonly url: string;
  readonly store: Map<string, Uint8Array>;
  /** Requests served at a time; the others wait in the order in which they came, as on HTTP/1.1 connections. */
  connections: number;
  delayMs: number;
  /** Bytes of one body per millisecond. */
  pace: number;
  fault: "none" | "down" | "corrupt" | "truncate" | "error";
  /** Which byte of an answer is wrong that is `corrupt`, as a share of its length. */
  corruptAt: number;
}

export interface FakePop {
  readonly name: string;
  readonly url: string;
  delayMs: number;
  /**
   * `cuts`: the bundle ends inside its first chunk; `garbles`: one bit of what follows the plan is wrong; `stalls`:
   * nothing follows the first plan, or the first part of a whole object; `portal`: something else answers in
   * its place with 200; `outdated`: it knows no manifest's format itself.
   */
  fault:
    | "none"
    | "outdated"
    | "forbids"
    | "refuses"
    | "silent"
    | "html"
    | "portal"
    | "error"
    | "endless"
    | "cuts"
    | "garbles"
    | "stalls";
  /** Where `garbles` strikes, modulo what there is. */
  garbledBit: number;
  /** The chunks that its plan promises, and those that it then has. */
  cached: number[];
  /** The data key in its plans, which are then of private objects. */
  dataKey?: string;
  /** How long the signatures in its plans are valid. Default: its regions need none. */
  signedSeconds?: number;
  missing: number[];
  /** Whether it fetches what it has not cached of a brief range. */
  fetches: boolean;
  /** Whether its plan names what the other PoPs have cached. */
  namesPeers: boolean;
  /** The faults of its answers for single chunks, which are made for peers. */
  chunkFault: "none" | "down" | "garbles";
}

export interface LoggedRequest {
  readonly to: string;
  /** Without the `trace`, which is random. */
  readonly url: string;
  readonly trace: string | undefined;
  readonly atMs: number;
  readonly range: string | undefined;
  readonly authorization: string | undefined;
  readonly priority: string | undefined;
  aborted: boolean;
}

interface StoredObject {
  readonly manifest: Manifest;
  /** shards[stripe][chunk] */
  readonly shards: Uint8Array[][];
  readonly bytes: Uint8Array;
}

const codec = await loadCodec();
const digest = (bytes: Uint8Array | string): Uint8Array => createHash("sha256").update(bytes).digest();
const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString("hex");

/** How a `FakeWorld` stores an object. */
export interface FakeObjectOptions {
  readonly stripeBytes?: number;
  readonly headers?: Record<string, string>;
  readonly toldToPops?: boolean;
  readonly format?: number;
  readonly requires?: readonly string[];
  readonly encryption?: Encryption;
  readonly gzip?: Gzip;
  /** Regions of extra chunks, from row 6 on. */
  readonly extra?: readonly string[];
}

export class FakeWorld {
  readonly clock = new VirtualClock();
  readonly regions: FakeRegion[] = [20, 40, 60, 80, 100, 120].map((delayMs, i) => ({
    name: `r${i}`,
    url: `https://r${i}.test/bucket`,
    store: new Map(),
    connections: Number.POSITIVE_INFINITY,
    delayMs,
    pace: Number.POSITIVE_INFINITY,
    fault: "none",
    corruptAt: 0,
  }));
  readonly pops: FakePop[] = [10, 50].map((delayMs, i) => ({
    name: `p${i}`,
    url: `https://p${i}.test`,
    delayMs,
    fault: "none",
    garbledBit: 0,
    cached: [],
    missing: [],
    fetches: false,
    namesPeers: false,
    chunkFault: "none",
  }));
  /** Batches arrive in parts of so many bytes. */
  batchPartBytes = Number.POSITIVE_INFINITY;
  /** Milliseconds before each part of a batch. */
  batchPartMs = 0;
  readonly log: LoggedRequest[] = [];
  readonly events: ReadEvent[] = [];
  /** Faults of PoPs, by name, in answers of `/o/` alone. */
  readonly faultsOfObjects = new Map<string, FakePop["fault"]>();
  /** Whether the PoPs have objects only from their origin, as plain ones. */
  arePlain = false;
  /** Whether `/o/` knows no object. */
  forgets = false;
  /** How often clients looked for a newer worker. */
  updates = 0;
  /** Bundles neither read to their end nor given up. */
  openBundles = 0;
  /** Whether the user asks for little data. */
  savesData = false;
  /** The network, as a client sees it. */
  readonly fetch: FetchPort = (url, init) => this.#fetch(url, init);
  readonly #busy = new Map<FakeRegion, { count: number; readonly waiting: (() => void)[] }>();
  readonly #objects = new Map<string, StoredObject>();
  readonly #generations = new Map<string, number>();

  /**
   * Codes `bytes` with k = 4, m = 2 and puts it into the buckets. Without `toldToPops`, the PoPs keep naming the old
   * version. `format` is what the manifest claims to be of, `requires` the features that it says a reader must know.
   */
  put(
    key: string,
    bytes: Uint8Array,
    {
      stripeBytes = 4096,
      headers = {},
      toldToPops = true,
      format = 2,
      requires,
      encryption,
      gzip,
      extra = [],
    }: FakeObjectOptions = {},
  ): Manifest {
    const code = { k: 4, m: 2 };
    const shape = { ...code, stripeBytes, bytes: bytes.length };
    const shards = Array.from({ length: stripeCount(shape) }, (_, stripe) => coded(bytes, shape, stripe, extra.length));
    const sha256 = hex(digest(bytes));
    const hashes = shards.map((stripe) => stripe.slice(0, 6).map(digest));
    const hashesSha256 = hex(digest(Buffer.concat(hashes.flat())));
    const content = { key, ...shape, blockBytes: stripeBytes, sha256, hashesSha256, ...(gzip && { gzip }) };
    const manifest: Manifest = {
      agarose: format as 2,
      ...(requires && { requires }),
      ...(encryption && { encryption }),
      generation: this.#generation(key),
      version: hex(digest(versionText(content))).slice(0, 32),
      // A new version has chunks of its own.
      upload: hex(digest(`upload of ${sha256}`)).slice(0, 32),
      ...content,
      contentType: "application/octet-stream",
      headers,
      modified: "2026-01-02T03:04:05.000Z",
      placement: roundRobin(
        code,
        this.regions.map(({ name }) => ({ name, provider: name })),
        key,
      ),
      hashes: hashes.map(encodeHashes),
      ...(extra.length > 0 && {
        extra: { upload: "e".repeat(32), placement: extra, sha256: extra.map(() => "0".repeat(64)) },
      }),
    };
    const stored = encodeManifest(manifest);
    if (toldToPops) this.#objects.set(key, { manifest: structuredClone(manifest), shards, bytes });
    chunkRegions(manifest).forEach((name, chunk) => {
      const region = this.region(name);
      region.store.set(chunkNameOf(manifest, chunk), Buffer.concat(shards.map((stripe) => stripe[chunk]!)));
    });
    for (const { store } of this.regions) store.set(manifestName(key), stored);
    return manifest;
  }

  #generation(key: string): number {
    const next = (this.#generations.get(key) ?? 0) + 1;
    this.#generations.set(key, next);
    return next;
  }

  /** Takes an object from PoPs and buckets. */
  remove(key: string): void {
    this.#objects.delete(key);
    for (const { store } of this.regions) for (const name of store.keys()) if (name.includes(key)) store.delete(name);
  }

  region(name: string): FakeRegion {
    return this.regions.find((region) => region.name === name)!;
  }

  /** A client with all PoPs and all regions configured, unless `config` says otherwise. */
  client(config: object = {}, store?: ObjectStore): ObjectClient {
    const endpoints = { pops: this.pops.map(named), regions: this.regions.map(named), unsigned: true };
    return new ObjectClient(parseConfig({ ...endpoints, ...config }, "https://app.test/"), {
      clock: this.clock,
      fetch: this.fetch,
      sha256: async (bytes) => digest(bytes),
      random: () => 0.5,
      codec: async () => codec,
      emit: (event) => void this.events.push(structuredClone(event)),
      savesData: () => this.savesData,
      update: () => void this.updates++,
      store,
    });
  }

  /** Requests for chunks, or all but probes. */
  requests(to?: string): LoggedRequest[] {
    return this.log.filter((entry) => !entry.url.endsWith("/healthz") && (to === undefined || entry.to === to));
  }

  async #fetch(url: string, { signal, headers, priority }: FetchInit): Promise<FetchedResponse> {
    const to = new URL(url).hostname.split(".")[0]!;
    const trace = /&trace=([^&]*)/.exec(url);
    const entry: LoggedRequest = {
      to,
      url: url.replace(trace?.[0] ?? "", ""),
      trace: trace?.[1],
      atMs: this.clock.now(),
      range: headers?.["range"],
      authorization: headers?.["authorization"],
      priority,
      aborted: false,
    };
    this.log.push(entry);
    signal?.addEventListener("abort", () => void (entry.aborted = true));
    const pop = this.pops.find(({ name }) => name === to);
    return pop
      ? this.#fromPop(pop, new URL(url), headers, signal)
      : this.#fromRegion(this.region(to), url, headers, signal);
  }

  /** `work` on its own connection, as soon as there is one. */
  async #connected(region: FakeRegion, work: () => Promise<void>): Promise<void> {
    const busy = this.#busy.get(region) ?? { count: 0, waiting: [] };
    this.#busy.set(region, busy);
    if (busy.count < region.connections) busy.count++;
    else await new Promise<void>((start) => busy.waiting.push(start));
    await work().finally(() => {
      const next = busy.waiting.shift();
      if (next) next();
      else busy.count--;
    });
  }

  async #fromRegion(
    region: FakeRegion,
    url: string,
    headers: Record<string, string> | undefined,
    signal: AbortSignal | undefined,
  ): Promise<FetchedResponse> {
    await this.#connected(region, () => this.clock.sleep(region.delayMs, signal));
    if (region.fault === "down") throw new TypeError("connection refused");
    if (region.fault === "error") return new Response("no", { status: 503 });
    const [unsigned] = url.split("?");
    const name = [...region.store.keys()].find((stored) => objectUrl(region.url, stored) === unsigned);
    const whole = name === undefined ? undefined : region.store.get(name)!;
    if (!whole) return new Response(null, { status: 404 });
    const range = /^bytes=(\d+)-(\d+)$/.exec(headers?.["range"] ?? "");
    const body = range ? whole.slice(Number(range[1]), Number(range[2]) + 1) : whole.slice();
    if (region.fault === "corrupt" && url.includes("chunks")) body[Math.floor(region.corruptAt * body.length)]! ^= 1;
    const sent = region.fault === "truncate" ? body.subarray(0, -1) : body;
    return new Response(this.#whileUp(region, sent, signal), { status: range ? 206 : 200 });
  }

  /** A body in parts, of which none comes any more once its region is down. */
  #whileUp(region: FakeRegion, body: Uint8Array, signal: AbortSignal | undefined): ReadableStream<Uint8Array> {
    const partBytes = 500;
    let at = 0;
    return new ReadableStream(
      {
        pull: async (controller) => {
          if (region.pace < Number.POSITIVE_INFINITY) await this.clock.sleep(partBytes / region.pace, signal);
          if (region.fault === "down") return controller.error(new TypeError("connection reset"));
          if (at >= body.length) return controller.close();
          controller.enqueue(body.subarray(at, (at += partBytes)));
        },
      },
      { highWaterMark: 0 },
    );
  }

  async #fromPop(
    pop: FakePop,
    url: URL,
    headers: Record<string, string> | undefined,
    signal: AbortSignal | undefined,
  ): Promise<FetchedResponse> {
    const { pathname, searchParams } = url;
    await this.clock.sleep(pop.fault === "silent" ? 1e9 : pop.delayMs, signal);
    const ofObject = pathname.startsWith("/o/") ? this.faultsOfObjects.get(pop.name) : undefined;
    if (ofObject && pop.fault !== ofObject) return this.#fromPop({ ...pop, fault: ofObject }, url, headers, signal);
    if (pop.fault === "refuses") throw new TypeError("connection refused");
    if (pop.fault === "error") return new Response('{"error":{"code":"INTERNAL","message":"oh"}}', { status: 500 });
    if (pathname === "/healthz") return new Response("ok");
    if (pop.fault === "portal") return new Response("<html>", { headers: { "content-type": "text/html" } });
    if (pop.fault === "outdated") {
      const error = { code: "MANIFEST_NEWER", message: "manifest has format 3", details: {} };
      const said = { "x-agarose-pop": pop.name, "x-agarose-error": error.code };
      return Response.json({ error }, { status: 502, headers: said });
    }
    if (pathname.startsWith("/o/")) {
      return this.#whole(
        pop,
        this.forgets ? undefined : this.#objects.get(decodeURIComponent(pathname.slice("/o/".length))),
        headers,
        signal,
      );
    }
    if (pop.fault === "forbids") {
      const error = { code: "FORBIDDEN", message: "a token is needed", details: {} };
      return Response.json({ error }, { status: 403 });
    }
    if (pop.fault === "endless") {
      const part = new Uint8Array(64 * 1024).fill(0x20);
      return new Response(new ReadableStream({ pull: (controller) => controller.enqueue(part) }), { status: 502 });
    }
    if (pop.fault === "html") return new Response("<html>", { headers: { "content-type": "text/html" } });
    if (pathname.startsWith(PEER_CHUNK_PREFIX)) return this.#chunkOf(pop, pathname, searchParams);
    if (pathname === "/v1/plans") return this.#plans(pop, searchParams, signal);
    const key = decodeURIComponent(pathname.slice("/v1/read/".length));
    const object = this.#objects.get(key);
    if (!object || this.arePlain) {
      const error = { code: object ? "OBJECT_PLAIN" : "OBJECT_NOT_FOUND", message: `no object ${key}`, details: {} };
      return new Response(JSON.stringify({ error }), { status: 404 });
    }
    const frames = await this.#bundle(pop, object, searchParams);
    this.openBundles++;
    let isOpen = true;
    const close = (): void => {
      if (isOpen) this.openBundles--;
      isOpen = false;
    };
    const body = new ReadableStream<Uint8Array>(
      {
        start(controller) {
          signal?.addEventListener("abort", () => {
            close();
            controller.error(signal.reason);
          });
        },
        pull(controller): Promise<void> | void {
          if (pop.fault === "stalls" && frames.length === 1) return new Promise(() => {});
          const frame = frames.shift();
          if (frame) return controller.enqueue(frame);
          close();
          controller.close();
        },
        cancel: close,
      },
      { highWaterMark: 0 },
    );
    return new Response(body, { headers: { "content-type": BUNDLE_CONTENT_TYPE } });
  }

  /** An object decoded, in parts of 1,000 bytes. */
  #whole(
    pop: FakePop,
    object: StoredObject | undefined,
    asked: Record<string, string> | undefined,
    signal: AbortSignal | undefined,
  ): FetchedResponse {
    const own = { "x-agarose-pop": pop.name };
    if (!object) {
      const error = { code: "OBJECT_NOT_FOUND", message: "no object", details: {} };
      return Response.json({ error }, { status: 404, headers: { ...own, "x-agarose-error": error.code } });
    }
    const { bytes, manifest } = object;
    const etag = `"${manifest.version}"`;
    const isRanged = asked?.["range"] !== undefined && (asked["if-range"] ?? etag) === etag;
    const { start, end } = (isRanged && parseRange(asked["range"]!, bytes.length)) || { start: 0, end: bytes.length };
    let at = start;
    const body = new ReadableStream<Uint8Array>(
      {
        start: (controller) => signal?.addEventListener("abort", () => controller.error(signal.reason)),
        pull: (controller) => {
          if (at > start && pop.fault === "cuts") return controller.error(new TypeError("connection reset"));
          if (at > start && pop.fault === "stalls") return new Promise(() => {});
          if (at === end) return controller.close();
          controller.enqueue(bytes.slice(at, (at = Math.min(end, at + 1000))));
        },
      },
      { highWaterMark: 0 },
    );
    const part = isRanged ? { "content-range": `bytes ${start}-${end - 1}/${bytes.length}` } : {};
    const headers = { ...own, ...part, etag, "content-length": String(end - start), "x-agarose-read": "edge" };
    return new Response(body as ReadableStream<Uint8Array<ArrayBuffer>>, { status: isRanged ? 206 : 200, headers });
  }

  #chunkOf(pop: FakePop, pathname: string, query: URLSearchParams): FetchedResponse {
    if (pop.chunkFault === "down") throw new TypeError("connection refused");
    const { manifest, shards } = this.#objects.get(decodeURIComponent(pathname.slice(PEER_CHUNK_PREFIX.length)))!;
    const chunk = Number(query.get("chunk"));
    const isThere =
      query.get("version") === manifest.version && pop.cached.includes(chunk) && !pop.missing.includes(chunk);
    if (!isThere) return new Response(null, { status: 404 });
    const shard = shards[Number(query.get("stripe"))]![chunk]!.slice();
    if (pop.chunkFault === "garbles") shard[0]! ^= 1;
    return new Response(shard);
  }

  #peersOf(pop: FakePop): PlanPeer[] {
    const others = this.pops.filter((other) => other !== pop && other.cached.length > 0);
    return others.map(({ name, cached, delayMs }) => ({ name, chunks: cached, meanMs: delayMs, sdMs: 1 }));
  }

  /** Of a batch with bodies, the shards of all objects alternate, the last objects first. */
  #plans(pop: FakePop, query: URLSearchParams, signal: AbortSignal | undefined): FetchedResponse {
    const found = query.getAll("key").flatMap((key, index) => {
      const object = this.#objects.get(key);
      return object ? [{ index, object }] : [];
    });
    const isSent = ({ manifest }: StoredObject): boolean => query.get("bodies") === "1" && stripeCount(manifest) === 1;
    const plans = found.map(({ index, object }) => {
      return encodePlan(this.#planOf(pop, object, undefined), isSent(object) ? object.manifest.k : 0, index);
    });
    const bodies = found.filter(({ object }) => isSent(object)).toReversed();
    const chunks = [0, 1, 2, 3].flatMap((chunk) =>
      bodies.map(({ index, object }) =>
        pop.missing.includes(chunk)
          ? encodeFrame("miss", index, chunk, new Uint8Array(0))
          : encodeFrame("chunk", index, chunk, object.shards[0]![chunk]!),
      ),
    );
    const rest = Buffer.concat([...plans.slice(1), ...chunks, encodeFrame("end", 0, 0, new Uint8Array(0))]);
    if (pop.fault === "garbles") rest[(pop.garbledBit >> 3) % rest.length]! ^= 1 << (pop.garbledBit & 7);
    const length = { stalls: 0, cuts: rest.length - Math.floor(chunks.length / 2) * 1024 }[pop.fault as string];
    const sent = Buffer.concat([plans[0] ?? new Uint8Array(0), rest.subarray(0, length)]);
    let at = 0;
    this.openBundles++;
    const body = new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          signal?.addEventListener("abort", () => {
            if (at < Number.POSITIVE_INFINITY) this.openBundles--;
            at = Number.POSITIVE_INFINITY;
            controller.error(signal.reason);
          });
        },
        pull: async (controller) => {
          const part = sent.subarray(at, at + this.batchPartBytes);
          at += part.length;
          if (this.batchPartMs > 0) await this.clock.sleep(this.batchPartMs, signal);
          if (part.length > 0) return controller.enqueue(part);
          if (pop.fault === "stalls") return new Promise(() => {});
          at = Number.POSITIVE_INFINITY;
          this.openBundles--;
          controller.close();
        },
        cancel: () => {
          at = Number.POSITIVE_INFINITY;
          this.openBundles--;
        },
      },
      { highWaterMark: 0 },
    );
    return new Response(body, { headers: { "content-type": BUNDLE_CONTENT_TYPE } });
  }

  #planOf(pop: FakePop, { manifest }: StoredObject, known: string | null | undefined): Plan {
    const { version } = manifest;
    const signed = pop.signedSeconds && { signed: { seconds: pop.signedSeconds, queries: {} } };
    return {
      pop: pop.name,
      epoch: 1,
      version,
      ...(known === version ? {} : { manifest }),
      cached: pop.cached,
      ...(pop.dataKey && { private: true, dataKey: pop.dataKey }),
      regions: this.regions.map(({ name, url, delayMs }) => ({
        name,
        url,
        meanMs: delayMs,
        sdMs: delayMs / 10,
        ...signed,
      })),
      ...(pop.namesPeers ? { peers: this.#peersOf(pop) } : {}),
      delta: 1,
    };
  }

  async #bundle(pop: FakePop, object: StoredObject, query: URLSearchParams): Promise<Uint8Array[]> {
    const { shards } = object;
    const pieces = piecesIn(query.get("range"), object.manifest);
    const sendsAll = pop.fetches && pieces !== undefined && query.get("leaves") !== "true";
    const { k } = object.manifest;
    const whole = this.#planOf(pop, object, query.get("version"));
    const plan = encodePlan(whole, sendsAll ? k : 0);
    const from = Number(query.get("from") ?? 0);
    const to = Math.min(Number(query.get("to") ?? Number.POSITIVE_INFINITY), shards.length - 1);
    const empty = new Uint8Array(0);
    const frameOf = (index: number, chunk: number): Uint8Array =>
      pop.missing.includes(chunk)
        ? encodeFrame("miss", index, chunk, empty)
        : encodeFrame("chunk", index, chunk, shards[index]![chunk]!);
    const decodes = sendsAll || new Set(pop.cached).size >= k;
    // These objects have no leaf list, so a piece is a whole shard.
    const chunks = pieces
      ? pieces
          .filter(({ chunk }) => decodes || pop.cached.includes(chunk))
          .map(({ stripe, chunk }) => frameOf(stripe.index, chunk))
      : shards.flatMap((_, index) =>
          index < from || index > to ? [] : pop.cached.map((chunk) => frameOf(index, chunk)),
        );
    if (pop.fault === "cuts") return [plan, ...chunks.slice(0, 1).map((frame) => frame.subarray(0, -1))];
    const rest = Buffer.concat([...chunks, encodeFrame("end", 0, 0, empty)]);
    if (pop.fault === "garbles") rest[(pop.garbledBit >> 3) % rest.length]! ^= 1 << (pop.garbledBit & 7);
    return [plan, rest];
  }
}

function piecesIn(header: string | null, manifest: Manifest): readonly Piece[] | undefined {
  try {
    const range = parseRange(header, manifest.bytes);
    return range && piecesOf(manifest, range);
  } catch {
    return undefined;
  }
}

/** `count` bytes that repeat late and depend on `seed`. */
export function sampleBytes(count: number, seed = 1): Uint8Array {
  let state = seed;
  return Uint8Array.from({ length: count }, () => {
    state = (state * 1_103_515_245 + 12_345) % 2 ** 31;
    return state >>> 16;
  });
}

function named({ name, url }: { name: string; url: string }): { name: string; url: string } {
  return { name, url };
}

function coded(
  bytes: Uint8Array,
  shape: { k: number; m: number; stripeBytes: number; bytes: number },
  index: number,
  extra: number,
): Uint8Array[] {
  const { start, dataBytes, shardBytes } = stripeShape(shape, index);
  const data = Array.from({ length: shape.k }, (_, i) => {
    const shard = new Uint8Array(shardBytes);
    const from = start + i * shardBytes;
    shard.set(bytes.subarray(from, Math.min(from + shardBytes, start + dataBytes)));
    return shard;
  });
  return [...data, ...codec.encode(data, [4, 5, 6, 7].slice(0, shape.m + extra))];
}
