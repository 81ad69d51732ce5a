/**
 * The upload of an object's leaf list, which is made stripe by stripe while the chunks are on their way. Every region
 * that keeps chunks gets a copy.
 */
import { chunkName, concat, LEAF_LIST, LeafList, leafListBytes, type HashedObject } from "@agarose/core/format";
import type { AgaroseError } from "@agarose/core";
import type { Store } from "../buckets/store.ts";
import { majorityOf, type RegionParts } from "../commit/write-context.ts";
import { nodeSha256 } from "../objects/sha256.ts";
import { askRegions } from "../regions/ask-regions.ts";
import { ChunkUpload, inStep, uploadWholeChunk } from "../upload/chunk-upload.ts";

/** A list of at most so many bytes is sent whole: the SDK retries such a put, and a store may refuse its checksum. */
const HELD_BYTES_MAX = 1024 * 1024;

interface LeafListTarget {
  readonly key: string;
  readonly upload: string;
  readonly object: HashedObject;
  readonly stores: readonly Store[];
  /** How many regions must have it: 0 where readers can do without. */
  readonly needed: number;
}

/** One leaf list. A pass over the object begins it, and adds its stripes in order. */
export class LeafListUpload {
  readonly #target: LeafListTarget;
  readonly #context: Pick<RegionParts, "signal" | "clock" | "breaker">;
  readonly #stored = new Set<string>();
  #list: LeafList;
  #uploads: readonly ChunkUpload[] = [];
  /** The parts of a list that is sent whole. */
  #held: Uint8Array[] | undefined;

  constructor(target: LeafListTarget, context: Pick<RegionParts, "signal" | "clock" | "breaker">) {
    this.#target = target;
    this.#context = context;
    this.#list = new LeafList(target.object, nodeSha256);
  }

  /** After a pass: `hashes` of the manifest. */
  get hashes(): readonly string[] {
    return this.#list.hashes;
  }

  /** The regions that have it, in the order of the stores. */
  get regions(): string[] {
    return this.all.filter((region) => this.#stored.has(region));
  }

  /** All regions that it is for. */
  get all(): string[] {
    return this.#target.stores.map(({ region }) => region.name);
  }

  /** The regions that do not have it. */
  get lacking(): string[] {
    return this.all.filter((region) => !this.#stored.has(region));
  }

  /** Notes that regions which took it do not have it any more. */
  lost(regions: readonly string[]): void {
    for (const region of regions) this.#stored.delete(region);
  }

  /** Whether as many regions have it as must. */
  get isEnough(): boolean {
    return this.#stored.size >= this.#target.needed;
  }

  /** Begins a pass: from here on, the list goes to the regions that lack it. */
  begin(): void {
    const { object } = this.#target;
    const bytes = leafListBytes(object);
    this.#list = new LeafList(object, nodeSha256);
    this.#held = bytes <= HELD_BYTES_MAX ? [] : undefined;
    this.#uploads = this.#held
      ? []
      : this.#storesLacking.map((store) => new ChunkUpload(LEAF_LIST, store, this.#name, bytes));
  }

  /** Adds the next stripe by the hashes of the blocks of each of its n shards. */
  async add(leaves: readonly Uint8Array[]): Promise<void> {
    const part = await this.#list.add(leaves);
    if (part.length === 0) return;
    if (this.#held) this.#held.push(part);
    else await this.#inStep((upload) => upload.write(part), false);
  }

  /** Ends the pass. No region is waited for that is slower than a majority. */
  async finish(): Promise<void> {
    if (this.#held) return this.#sendWhole(concat(this.#held));
    await this.#inStep((upload) => upload.finish(), true);
    for (const { error, store } of this.#uploads) if (!error) this.#stored.add(store.region.name);
  }

  /** Ends the pass without completing any copy. */
  giveUp(reason: AgaroseError): void {
    this.#held = undefined;
    for (const upload of this.#uploads) upload.giveUp(reason);
  }

  async #sendWhole(list: Uint8Array): Promise<void> {
    const stores = this.#storesLacking;
    if (list.length === 0 || stores.length === 0) return;
    const store = (to: Store, signal: AbortSignal): Promise<void> => uploadWholeChunk(to, this.#name, list, signal);
    const outcomes = await askRegions(stores, store, { enough: this.#enough }, this.#context);
    for (const { store: to, error } of outcomes) if (!error) this.#stored.add(to.region.name);
  }

  get #storesLacking(): Store[] {
    return this.#target.stores.filter(({ region }) => !this.#stored.has(region.name));
  }

  get #name(): string {
    const { key, upload } = this.#target;
    return chunkName(key, upload, LEAF_LIST);
  }

  /** How many more regions are waited for, however long they take. */
  get #enough(): number {
    const { stores, needed } = this.#target;
    return Math.max(1, needed - this.#stored.size, majorityOf(stores) - this.#stored.size);
  }

  #inStep(step: (upload: ChunkUpload) => Promise<void>, isAnswered: boolean): Promise<void> {
    return inStep(this.#uploads, step, { enough: this.#enough, isAnswered }, this.#context);
  }
}
