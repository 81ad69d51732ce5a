/**
 * The upload of an object's leaf list, which is made stripe by stripe while the chunks are on their way. Every region
 * that keeps chunks gets a copy.
 */
import { chunkName, LEAF_LIST, LeafList, leafListBytes, type HashedObject } from "@agarose/core/format";
import type { AgaroseError } from "@agarose/core";
import type { Store } from "../buckets/store.ts";
import { majorityOf, type RegionParts } from "../commit/write-context.ts";
import { nodeSha256 } from "../objects/sha256.ts";
import { ChunkUpload, inStep } from "../upload/chunk-upload.ts";

/** Which leaf list to store, and where. */
export interface LeafListTarget {
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
    const { key, upload, object, stores } = this.#target;
    const bytes = leafListBytes(object);
    const lacking = bytes > 0 ? stores.filter(({ region }) => !this.#stored.has(region.name)) : [];
    const name = chunkName(key, upload, LEAF_LIST);
    this.#list = new LeafList(object, nodeSha256);
    this.#uploads = lacking.map((store) => new ChunkUpload(LEAF_LIST, store, name, bytes));
  }

  /** Adds the next stripe by the hashes of the blocks of each of its n shards. */
  async add(leaves: readonly Uint8Array[]): Promise<void> {
    const part = await this.#list.add(leaves);
    if (part.length > 0) await this.#inStep((upload) => upload.write(part), false);
  }

  /** Ends the pass. No region is waited for that is slower than a majority. */
  async finish(): Promise<void> {
    await this.#inStep((upload) => upload.finish(), true);
    for (const { error, store } of this.#uploads) if (!error) this.#stored.add(store.region.name);
  }

  /** Ends the pass without completing any copy. */
  giveUp(reason: AgaroseError): void {
    for (const upload of this.#uploads) upload.giveUp(reason);
  }

  #inStep(step: (upload: ChunkUpload) => Promise<void>, isAnswered: boolean): Promise<void> {
    const { stores, needed } = this.#target;
    const enough = Math.max(1, needed - this.#stored.size, majorityOf(stores) - this.#stored.size);
    return inStep(this.#uploads, step, { enough, isAnswered }, this.#context);
  }
}
