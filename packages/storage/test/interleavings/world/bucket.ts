/**
 * A bucket in memory: objects, ETags and conditional writes as S3 has them. An ETag is a hash of the content, so it
 * comes back when the content does.
 */
import { hash } from "node:crypto";

/** The object of a bucket under a name. */
export interface StoredObject {
  readonly bytes: Uint8Array;
  readonly etag: string;
  readonly modifiedMs: number;
}

/** The conditions of a write or removal. */
export interface Conditions {
  readonly ifMatch?: string | undefined;
  readonly ifNoneMatch?: "*" | undefined;
}

/** Called after every change. */
export type OnChange = (name: string, after: StoredObject | undefined) => void;

export class Bucket {
  readonly objects = new Map<string, StoredObject>();
  /** How often it refused a condition. */
  refusals = 0;
  readonly #nowMs: () => number;
  readonly #obeysConditions: boolean;
  readonly #onChange: OnChange;

  constructor(nowMs: () => number, obeysConditions: boolean, onChange: OnChange) {
    this.#nowMs = nowMs;
    this.#obeysConditions = obeysConditions;
    this.#onChange = onChange;
  }

  /** Stores an object and returns the HTTP status. */
  put(name: string, bytes: Uint8Array, conditions: Conditions): number {
    const refusal = this.#check(name, conditions);
    if (refusal !== undefined) return refusal;
    const stored = { bytes, etag: etagOf(bytes), modifiedMs: this.#nowMs() };
    this.objects.set(name, stored);
    this.#onChange(name, stored);
    return 200;
  }

  /** Removes an object and returns the HTTP status. */
  remove(name: string, conditions: Conditions = {}): number {
    const refusal = this.#check(name, conditions);
    if (refusal !== undefined) return refusal;
    if (this.objects.delete(name)) this.#onChange(name, undefined);
    return 204;
  }

  /** At most `max` names below `prefix` that come after `after`, in order. */
  list(prefix: string, after: string, max: number): string[] {
    const names = [...this.objects.keys()].filter((name) => name.startsWith(prefix) && name > after);
    return names.toSorted().slice(0, max);
  }

  #check(name: string, { ifMatch, ifNoneMatch }: Conditions): number | undefined {
    if (!this.#obeysConditions) return undefined;
    const there = this.objects.get(name);
    const isRefused =
      (ifNoneMatch !== undefined && there !== undefined) ||
      (ifMatch !== undefined && ifMatch !== "*" && there?.etag !== ifMatch) ||
      (ifMatch !== undefined && !there);
    if (!isRefused) return undefined;
    this.refusals++;
    return ifMatch !== undefined && !there ? 404 : 412;
  }
}

function etagOf(bytes: Uint8Array): string {
  return `"${hash("md5", bytes)}"`;
}
