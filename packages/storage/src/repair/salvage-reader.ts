/**
 * A damaged object as the source of its own repair: it reads some of the chunks side by side, each by one request,
 * verifies every shard, decodes the stripes, and notes what it finds damaged on the way.
 */
import { createHash, type Hash } from "node:crypto";
import { AgaroseError, type Codec, type Shard } from "@agarose/core";
import { HASH_BYTES, hashShard, stripeCount, stripeShape, type Manifest, type StripeShape } from "@agarose/core/format";
import { storeNamed } from "../buckets/region-names.ts";
import type { StripeHashes } from "@agarose/core/read";
import { hashesOf } from "../leaf-lists/leaf-lists.ts";
import { runTasks, type Task } from "../regions/ask-regions.ts";
import type { RegionParts } from "../commit/write-context.ts";
import { nodeSha256 } from "../objects/sha256.ts";
import type { SourceReader } from "../upload/file-source.ts";
import { ChunkStream } from "./chunk-stream.ts";

/** Which chunks to read. */
export interface SalvagePlan {
  /** Chunks that seem whole, those to read first in front. */
  readonly chunks: readonly number[];
  /** How many of them to read side by side. The others are read in place of those that fail. */
  readonly width: number;
  /** Chunks to compute the MD5 of, for the comparison with what their stores say. */
  readonly digests?: readonly number[];
}

interface FoundDamage {
  readonly code: string;
  readonly stripes: number[];
}

/** Quick from the start to the end. The last stripe stays in memory; any other position begins another read. */
export class SalvageReader implements SourceReader {
  /** By chunk, what was missing, wrong or out of reach so far. */
  readonly damage = new Map<number, FoundDamage>();
  readonly #manifest: Manifest;
  readonly #plan: SalvagePlan;
  readonly #codec: Codec;
  readonly #context: RegionParts;
  readonly #hashes: StripeHashes;
  readonly #digests: Map<number, Hash>;
  #streams: ChunkStream[] = [];
  #spares: number[] = [];
  #stripe = -1;
  #digested = 0;
  #data: Uint8Array = new Uint8Array();

  constructor(manifest: Manifest, plan: SalvagePlan, codec: Codec, context: RegionParts) {
    this.#manifest = manifest;
    this.#plan = plan;
    this.#codec = codec;
    this.#context = context;
    this.#hashes = hashesOf(manifest, context);
    this.#digests = new Map((plan.digests ?? []).map((chunk) => [chunk, createHash("md5")]));
  }

  async read(target: Uint8Array, position: number): Promise<number> {
    const { bytes, stripeBytes } = this.#manifest;
    const end = Math.min(bytes, position + target.length);
    for (let at = position; at < end;) {
      await this.#load(Math.floor(at / stripeBytes));
      const part = this.#data.subarray(at % stripeBytes, (at % stripeBytes) + end - at);
      target.set(part, at - position);
      at += part.length;
    }
    return Math.max(0, end - position);
  }

  /** Reads what is left, for what it says of the chunks. */
  async drain(): Promise<void> {
    for (let stripe = this.#stripe + 1; stripe < stripeCount(this.#manifest); stripe++) await this.#load(stripe);
  }

  /** Once all is read: the MD5 in hex that each of the chunks of `SalvagePlan.digests` must have. */
  digests(): Map<number, string> {
    const isComplete = this.#digested === stripeCount(this.#manifest);
    return new Map(isComplete ? [...this.#digests].map(([chunk, hash]) => [chunk, hash.copy().digest("hex")]) : []);
  }

  /** Whether all of the object is in memory. */
  get isHeld(): boolean {
    return stripeCount(this.#manifest) === 1 && this.#stripe === 0;
  }

  async close(): Promise<void> {
    for (const stream of this.#streams) stream.close();
    this.#streams = [];
  }

  async #load(stripe: number): Promise<void> {
    if (stripe === this.#stripe) return;
    if (stripe === 0 || stripe !== this.#stripe + 1) await this.#begin(stripe);
    const shape = stripeShape(this.#manifest, stripe);
    const shards = await this.#collect(shape);
    const { k } = this.#manifest;
    const byIndex = new Map(shards.map(({ index, bytes }) => [index, bytes]));
    const lacking = Array.from({ length: k }, (_, index) => index).filter((index) => !byIndex.has(index));
    const made = lacking.length === 0 ? [] : this.#codec.reconstruct(k, shards, lacking);
    const data = Array.from({ length: k }, (_, index) => byIndex.get(index) ?? made[lacking.indexOf(index)]!);
    if (stripe === this.#digested) this.#digest(data);
    this.#data = Buffer.concat(data).subarray(0, shape.dataBytes);
    this.#stripe = stripe;
    if (stripe === stripeCount(this.#manifest) - 1) await this.close();
  }

  async #begin(stripe: number): Promise<void> {
    await this.close();
    const { chunks, width } = this.#plan;
    const usable = chunks.filter((chunk) => !this.damage.has(chunk));
    this.#spares = usable.slice(width);
    this.#streams = usable.slice(0, width).map((chunk) => this.#open(chunk, stripe));
  }

  #open(chunk: number, stripe: number): ChunkStream {
    const store = storeNamed(this.#context.stores, this.#manifest.placement[chunk]!)!;
    return new ChunkStream(this.#manifest, chunk, store, stripe, this.#context.signal);
  }

  /** At least k good shards of a stripe. */
  async #collect(shape: StripeShape): Promise<Shard[]> {
    const { k, key } = this.#manifest;
    const shards: Shard[] = [];
    for (let asked = this.#streams; ;) {
      shards.push(...(await this.#take(asked, shape, Math.max(1, k - shards.length))));
      if (shards.length >= k) return shards;
      asked = this.#spares.splice(0, k - shards.length).map((chunk) => this.#open(chunk, shape.index));
      this.#streams.push(...asked);
      if (asked.length > 0) continue;
      const failures = [...this.damage].map(([chunk, { code }]) => ({ chunk, code }));
      throw new AgaroseError(
        "NOT_ENOUGH_CHUNKS",
        `stripe ${shape.index} of ${JSON.stringify(key)} has ${shards.length} of ${k} chunks (damaged or out of reach: ` +
          `${failures.map(({ chunk, code }) => `${chunk} ${code}`).join(", ")}): repair it again once more regions answer`,
        { key, stripe: shape.index, needed: k, received: shards.length, failures },
      );
    }
  }

  async #take(streams: readonly ChunkStream[], shape: StripeShape, enough: number): Promise<Shard[]> {
    const tasks = streams.map((stream): Task<Uint8Array> => {
      return { store: stream.store, run: () => stream.next(shape.shardBytes) };
    });
    const outcomes = await runTasks(tasks, { enough: Math.min(enough, tasks.length) }, this.#context);
    const shards: Shard[] = [];
    for (const [at, { value, error }] of outcomes.entries()) {
      const stream = streams[at]!;
      if (error) this.#drop(stream, error.code, shape.index);
      else if (await this.#isSound(stream.chunk, value, shape.index))
        shards.push({ index: stream.chunk, bytes: value });
      else this.#note(stream.chunk, "CHUNK_CORRUPT", [shape.index]);
    }
    return shards;
  }

  async #isSound(chunk: number, shard: Uint8Array, stripe: number): Promise<boolean> {
    const hash = await hashShard(shard, this.#manifest.blockBytes, nodeSha256);
    const expected = await this.#hashes.of(stripe, this.#context.signal);
    return Buffer.from(hash).equals(expected.subarray(chunk * HASH_BYTES, (chunk + 1) * HASH_BYTES));
  }

  #drop(stream: ChunkStream, code: string, stripe: number): void {
    stream.close();
    this.#streams = this.#streams.filter((candidate) => candidate !== stream);
    const rest = Array.from({ length: stripeCount(this.#manifest) - stripe }, (_, index) => stripe + index);
    this.#note(stream.chunk, code, rest);
  }

  #note(chunk: number, code: string, stripes: number[]): void {
    const before = this.damage.get(chunk);
    if (!before) this.damage.set(chunk, { code, stripes });
    else for (const stripe of stripes) before.stripes.push(stripe);
  }

  #digest(data: readonly Uint8Array[]): void {
    const rows = [...this.#digests.keys()].filter((chunk) => chunk >= this.#manifest.k);
    const parity = rows.length === 0 ? [] : this.#codec.encode(data, rows);
    for (const [chunk, hash] of this.#digests) hash.update(data[chunk] ?? parity[rows.indexOf(chunk)]!);
    this.#digested++;
  }
}
