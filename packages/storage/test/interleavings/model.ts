/**
 * The promises of docs/internals/guarantees.md, as checks. The model sees every change of a manifest in a bucket, and
 * the start and the result of every operation.
 */
import { hash } from "node:crypto";

/** A manifest or tombstone as the model sees it. */
export interface SeenRecord {
  readonly generation: number;
  /** Undefined in a tombstone. */
  readonly upload: string | undefined;
  readonly sha256: string | undefined;
  readonly digest: string;
}

/** How an operation ended. */
export type Result =
  | { readonly state: "done"; readonly generation: number; readonly regionsWithout: readonly number[] }
  /** There was nothing to do. */
  | { readonly state: "nothing" }
  | { readonly state: "failed"; readonly code: string; readonly message: string };

/** The result of a reader. */
export type ReadResult =
  | { readonly state: "read"; readonly generation: number; readonly upload: string; readonly sha256: string }
  | { readonly state: "failed"; readonly code: string; readonly message: string };

/** The next operation of a writer. */
export interface Intent {
  readonly verb: "put" | "rm";
  /** Of the content of a put. */
  readonly sha256?: string | undefined;
  /** The only generation whose place it may take. Default: any. */
  readonly seen?: number | undefined;
  /** How old, in milliseconds, a version must be for this writer to remove it. Default: any may go. */
  readonly ageMs?: number | undefined;
}

/** A writer: put or rm. */
interface Writer extends Intent {
  readonly id: number;
  /** Everything acknowledged before it started. */
  readonly ackedBefore: number;
  state: "running" | "acked" | "undone" | "uncertain";
}

/** A copy of a replaced manifest. */
interface SeenCopy {
  readonly holders: Set<number>;
  /** When a majority first had it. */
  keptFromMs?: number;
}

interface Acked {
  readonly generation: number;
  readonly verb: "put" | "rm";
  readonly upload: string | undefined;
}

/** A reader's memory from before its read. */
export interface ReadStart {
  readonly acked: Acked | undefined;
  readonly floor: number;
  readonly undone: ReadonlySet<string>;
  readonly removals: number;
}

/** A promise that was broken. */
export class Violation extends Error {}

/** A failure that says that readers still see what they saw before. The last two are of what a restore reads. */
const UNDONE: ReadonlySet<string> = new Set([
  "NO_QUORUM",
  "STORE_FAILED",
  "REPLACED_MEANWHILE",
  "NOT_ENOUGH_CHUNKS",
  "READ_TIMEOUT",
  "MANIFEST_UNTRUSTED",
  "CONFIG_INVALID",
  "KEYS_OUTDATED",
  "FORBIDDEN",
]);
const UNCERTAIN: ReadonlySet<string> = new Set(["WRITE_UNCERTAIN", "UPLOAD_REFUSED"]);

export class Model {
  readonly #majority: number;
  /** The contents of each region. */
  readonly #regions: (SeenRecord | undefined)[];
  /** The generation below which a region must not fall again. */
  readonly #floors: number[];
  readonly #writers = new Map<number, Writer>();
  /** The put that chose an upload. */
  readonly #uploads = new Map<string, Writer>();
  readonly #begun = new Set<string>();
  /** By their puts, the uploads that are put more than once. */
  readonly #again = new Map<number, string>();
  /** The writers of tombstones, by digest. */
  readonly #tombstones = new Map<string, Writer>();
  #lastTombstone: Writer | undefined;
  readonly #byGeneration = new Map<number, SeenRecord>();
  /** When a generation first came into an honest region. */
  readonly #storedMs = new Map<number, number>();
  /** Every pair of a generation and an upload that was there before. */
  readonly #generationsOf = new Map<string, Set<number>>();
  /** Their generations that a put of them wrote, which are no copies. */
  readonly #putAgain = new Set<number>();
  readonly #acked: Acked[] = [];
  readonly #keepMs: number;
  /** The history, by upload and the generation that took its place. */
  readonly #copies = new Map<string, SeenCopy>();
  #removals = 0;
  #retiredAfter = Number.POSITIVE_INFINITY;

  /** The version of a majority of honest regions: of all, or of all but the hostile one. */
  readonly #hostile: number | undefined;

  /**
   * @param hostile the region that lies, whose content promises nothing.
   * @param keepMs how long a version stays after another one has taken its place.
   */
  constructor(regions: number, hostile?: number, keepMs = 0) {
    this.#keepMs = keepMs;
    this.#majority = Math.floor(regions / 2) + (hostile === undefined ? 1 : 0);
    this.#hostile = hostile;
    this.#regions = Array.from({ length: regions }, () => undefined);
    this.#floors = Array.from({ length: regions }, () => 0);
  }

  startWriter(id: number, intent: Intent): void {
    if (intent.verb === "rm") this.#removals++;
    const ackedBefore = this.#newestAcked()?.generation ?? -1;
    this.#writers.set(id, { id, ...intent, ackedBefore, state: "running" });
  }

  /** A page began an upload. Chunks of two files must not mix. */
  beginUpload(upload: string): void {
    if (this.#begun.has(upload)) throw new Violation(`upload ${upload} was begun twice`);
    this.#begun.add(upload);
  }

  /** A put chose the name of an upload. A page that commits once more puts the same one again. */
  nameUpload(id: number, upload: string): void {
    const writer = this.#writers.get(id);
    if (writer?.verb !== "put") return;
    const before = this.#uploads.get(upload);
    if (before) for (const one of [before.id, id]) this.#again.set(one, upload);
    this.#uploads.set(upload, writer);
  }

  /** A manifest or tombstone changed in a region. */
  change(region: number, record: SeenRecord | undefined, by: { readonly id: number }, nowMs: number): void {
    if (record && region !== this.#hostile) {
      this.#checkRecord(record, by.id);
      if (!this.#storedMs.has(record.generation)) this.#storedMs.set(record.generation, nowMs);
    }
    if (region === this.#hostile) {
      // Its part of a killed rm is as good as any other, and a repair repeats it.
      const writer = this.#writers.get(by.id);
      if (record && record.upload === undefined && writer?.verb === "rm") this.#lastTombstone = writer;
      return;
    }
    const before = this.#regions[region];
    this.#regions[region] = record;
    if (!record && before && before.upload === undefined && this.#isForgotten(before)) return this.#forget();
    this.#checkKept(before, record, region);
    const floor = this.#floors[region]!;
    if (floor > 0 && (record?.generation ?? 0) < floor) {
      throw new Violation(
        `region ${region} fell back to generation ${record?.generation ?? "none"}, generation ${floor} was acknowledged in it`,
      );
    }
    this.#checkMajority();
  }

  /** A copy of the history came into a region, or went. */
  changeCopy(region: number, suffix: string, isThere: boolean, nowMs: number): void {
    if (region === this.#hostile) return;
    const copy = this.#copies.get(suffix) ?? { holders: new Set() };
    this.#copies.set(suffix, copy);
    if (isThere) copy.holders.add(region);
    else copy.holders.delete(region);
    if (!isThere && this.#isDue(copy, nowMs)) {
      throw new Violation(`region ${region} lost the copy ${suffix}, which was to stay until ${this.#endOf(copy)} ms`);
    }
    if (copy.holders.size >= this.#majority) copy.keptFromMs ??= nowMs;
  }

  /** A chunk went. */
  removeChunk(region: number, upload: string, nowMs: number): void {
    if (region === this.#hostile) return;
    const due = [...this.#copies].find(([suffix, copy]) => suffix.startsWith(upload) && this.#isDue(copy, nowMs));
    if (due) throw new Violation(`region ${region} lost a chunk of the kept version ${due[0]}`);
  }

  /** Copies that must be readable: of puts that were acknowledged, and kept for a while more. */
  keptCopies(nowMs: number): { readonly suffix: string; readonly region: number; readonly sha256: string }[] {
    return [...this.#copies].flatMap(([suffix, copy]) => {
      const writer = this.#uploads.get(suffix.slice(0, suffix.indexOf(".")));
      const [region] = copy.holders;
      if (writer?.state !== "acked" || !this.#isDue(copy, nowMs) || region === undefined) return [];
      return [{ suffix, region, sha256: writer.sha256! }];
    });
  }

  endWriter(id: number, result: Result, nowMs: number): void {
    const writer = this.#writers.get(id)!;
    if (result.state === "failed") return this.#endFailed(writer, result);
    if (result.state === "nothing") {
      const acked = this.#newestAckedBefore(writer.ackedBefore);
      // Where there is an age, what is younger stays.
      if (acked?.verb === "put" && this.#removals === 1 && writer.ageMs === undefined) {
        throw new Violation(`rm found nothing, though generation ${acked.generation} was acknowledged before it`);
      }
      writer.state = "acked";
      return;
    }
    const { generation, regionsWithout } = result;
    if (generation < writer.ackedBefore) {
      throw new Violation(
        `${writer.verb} was acknowledged as generation ${generation}, but ${writer.ackedBefore} was acknowledged before it began`,
      );
    }
    const record = this.#byGeneration.get(generation);
    if (!record) throw new Violation(`generation ${generation} was acknowledged, and no region ever had it`);
    if (record.sha256 !== writer.sha256) {
      throw new Violation(
        `generation ${generation} was acknowledged to ${writer.verb} ${id}, and holds something else`,
      );
    }
    const hidden = this.#acked.find(
      (acked) => acked.generation > (writer.seen ?? generation) && acked.generation < generation,
    );
    if (hidden) {
      throw new Violation(
        `generation ${generation} was to replace generation ${writer.seen} only, and hides ${hidden.generation}, which was acknowledged`,
      );
    }
    this.#checkAge(writer, generation, nowMs);
    writer.state = "acked";
    this.#acked.push({ generation, verb: writer.verb, upload: record.upload });
    for (const region of this.#floors.keys()) {
      if (region !== this.#hostile && !regionsWithout.includes(region))
        this.#floors[region] = Math.max(this.#floors[region]!, generation);
    }
    const missing = this.#floors.findIndex((floor, region) => (this.#regions[region]?.generation ?? 0) < floor);
    if (missing >= 0) {
      throw new Violation(`generation ${generation} was acknowledged, and region ${missing} does not hold it`);
    }
    this.#checkMajority();
    for (const one of this.#regions) if (one) this.#checkCopy(one);
  }

  /**
   * From now on, nothing may be acknowledged by the key that a rotation has replaced, but for what a majority holds
   * already: a walk finds that.
   */
  retireFirstKey(): void {
    const generations = this.#regions.map((record) => record?.generation ?? 0).toSorted((a, b) => b - a);
    this.#retiredAfter = generations[this.#majority - 1]!;
  }

  /** A generation was acknowledged by that key. */
  checkFirstKey(id: number, generation: number): void {
    if (generation <= this.#retiredAfter) return;
    throw new Violation(`writer ${id} was acknowledged as generation ${generation} by a key that is out of force`);
  }

  startRead(): ReadStart {
    const undone = [...this.#uploads].filter(([, { state }]) => state === "undone").map(([upload]) => upload);
    return {
      acked: this.#newestAcked(),
      floor: Math.min(...this.#floors),
      undone: new Set(undone),
      removals: this.#removals,
    };
  }

  /**
   * @param seen the newest generation that this reader has seen before.
   * @param isHealthy whether all regions answered all the time.
   */
  endRead(start: ReadStart, result: ReadResult, seen: number, isHealthy: boolean): void {
    const { acked } = start;
    if (result.state === "failed") {
      if (acked?.verb !== "put" || this.#removals > 0) return;
      // A hostile region can show a version whose chunks are gone, so that the read fails.
      if (result.code === "OBJECT_NOT_FOUND" || (isHealthy && this.#hostile === undefined)) {
        throw new Violation(
          `a read failed, though generation ${acked.generation} was acknowledged: ${result.code} ${result.message}`,
        );
      }
      return;
    }
    const { generation, upload, sha256 } = result;
    const writer = this.#uploads.get(upload);
    if (!writer) throw new Violation(`a reader saw upload ${upload}, which no put has begun`);
    if (writer.sha256 !== sha256) throw new Violation(`a reader got other bytes than put ${writer.id} stored`);
    if (this.#hostile === undefined && start.undone.has(upload) && !this.#hasTwin(writer)) {
      throw new Violation(`a reader saw put ${writer.id}, which had reported that it was undone`);
    }
    if (generation < start.floor) {
      throw new Violation(`a reader saw generation ${generation}, and every region has acknowledged ${start.floor}`);
    }
    if (generation < seen && generation < (acked?.generation ?? 0)) {
      throw new Violation(
        `a reader went back from generation ${seen} to ${generation}, though ${acked!.generation} was acknowledged`,
      );
    }
  }

  /** Whether anything may be there to read. */
  get newest(): SeenRecord | undefined {
    return this.#regions.toSorted((a, b) => (b?.generation ?? -1) - (a?.generation ?? -1))[0];
  }

  /** Whether a put was acknowledged and no rm has begun. */
  get mustRead(): boolean {
    return this.#newestAcked()?.verb === "put" && this.#removals === 0;
  }

  #endFailed(writer: Writer, { code, message }: { readonly code: string; readonly message: string }): void {
    if (UNCERTAIN.has(code)) {
      writer.state = "uncertain";
      return;
    }
    if (!UNDONE.has(code)) throw new Violation(`${writer.verb} failed in an unexpected way: ${code} ${message}`);
    writer.state = "undone";
    const holder = this.#regions.findIndex((record) => record && this.#writerOf(record) === writer);
    if (holder < 0 || this.#hasTwin(writer)) return;
    throw new Violation(`${writer.verb} ${writer.id} reported ${code}, and region ${holder} still holds what it wrote`);
  }

  /** A version that another one replaces in a region was copied to a majority before. */
  #checkKept(before: SeenRecord | undefined, record: SeenRecord | undefined, region: number): void {
    if (this.#keepMs === 0 || before?.upload === undefined || before.upload === record?.upload) return;
    // An undone write gives its place back.
    if (!record || record.generation < before.generation) return;
    const suffix = `${before.upload}.${record.generation}`;
    if (this.#copies.get(suffix)?.keptFromMs !== undefined) return;
    throw new Violation(`generation ${before.generation} went from region ${region}, and no majority had its copy`);
  }

  #isDue({ keptFromMs }: SeenCopy, nowMs: number): boolean {
    return keptFromMs !== undefined && nowMs < keptFromMs + this.#keepMs;
  }

  #endOf({ keptFromMs }: SeenCopy): number {
    return keptFromMs! + this.#keepMs;
  }

  /** No acknowledged version goes before its time, but by a tombstone of `rm` that was only brought everywhere. */
  #checkAge({ ageMs, verb, id }: Writer, generation: number, nowMs: number): void {
    const remover = this.#writerOf(this.#byGeneration.get(generation)!);
    if (ageMs === undefined || remover?.ageMs === undefined) return;
    const older = this.#acked.filter((acked) => acked.generation < generation);
    const last = older.toSorted((a, b) => b.generation - a.generation)[0];
    const storedMs = last && this.#storedMs.get(last.generation);
    if (last?.verb !== "put" || storedMs === undefined || nowMs - storedMs >= ageMs) return;
    throw new Violation(
      `${verb} ${id} removed generation ${last.generation} after ${nowMs - storedMs} ms, and it had ${ageMs} ms`,
    );
  }

  #checkRecord(record: SeenRecord, by: number): void {
    const { generation, upload, sha256, digest } = record;
    if (upload === undefined) {
      const remover = this.#writers.get(by);
      // A repair may repeat a tombstone under its own generation.
      const writer = this.#tombstones.get(digest) ?? (remover?.verb === "rm" ? remover : this.#lastTombstone);
      if (!writer) throw new Violation(`operation ${by} wrote a tombstone that no rm has made`);
      this.#tombstones.set(digest, writer);
      this.#lastTombstone = writer;
    } else {
      const put = this.#uploads.get(upload);
      if (put?.sha256 !== sha256) throw new Violation(`operation ${by} wrote a manifest that no put has made`);
    }
    const writer = this.#writerOf(record)!;
    if (writer.state === "undone" && !this.#hasTwin(writer)) {
      throw new Violation(`operation ${by} wrote what ${writer.verb} ${writer.id} had reported as undone`);
    }
    const same = this.#byGeneration.get(generation);
    if (same && same.digest !== digest) throw new Violation(`two records have generation ${generation}`);
    this.#byGeneration.set(generation, record);
    const id = this.#idOf(record);
    if (upload !== undefined && this.#again.get(by) === upload) this.#putAgain.add(generation);
    this.#generationsOf.set(id, (this.#generationsOf.get(id) ?? new Set()).add(generation));
    this.#checkCopy(record);
  }

  /** A copy of an older record must not come after what was acknowledged in between. */
  #checkCopy(record: SeenRecord): void {
    const { generation, upload } = record;
    const own = [...this.#generationsOf.get(this.#idOf(record))!].filter((other) => other < generation);
    if (own.length === 0 || this.#putAgain.has(generation)) return;
    const base = Math.max(...own);
    const lost = this.#acked.find((acked) => {
      return acked.generation > base && acked.generation < generation && acked.upload !== upload;
    });
    if (!lost) return;
    throw new Violation(
      `generation ${generation} repeats generation ${base} over generation ${lost.generation}, which was acknowledged`,
    );
  }

  #checkMajority(): void {
    const acked = this.#newestAcked();
    if (!acked) return;
    const holders = this.#regions.filter((record) => record && record.generation >= acked.generation).length;
    if (holders >= this.#majority) return;
    throw new Violation(
      `${holders} of ${this.#regions.length} regions hold generation ${acked.generation} or newer, which was acknowledged`,
    );
  }

  /** Whether a tombstone may go: it is the newest acknowledged, and what other regions hold is the same or gone. */
  #isForgotten({ digest, generation }: SeenRecord): boolean {
    const others = this.#regions.filter((record) => record !== undefined);
    return generation >= (this.#newestAcked()?.generation ?? 0) && others.every((record) => record.digest === digest);
  }

  /** The key restarts. */
  #forget(): void {
    this.#acked.length = 0;
    this.#floors.fill(0);
    this.#byGeneration.clear();
    this.#putAgain.clear();
    this.#storedMs.clear();
    this.#generationsOf.clear();
    for (const record of this.#regions) if (record) this.#byGeneration.set(record.generation, record);
  }

  /** The common part of a record and its copies. */
  #idOf({ upload, digest }: SeenRecord): string {
    return upload ?? `rm ${this.#tombstones.get(digest)!.id}`;
  }

  #writerOf({ upload, digest }: SeenRecord): Writer | undefined {
    return upload === undefined ? this.#tombstones.get(digest) : this.#uploads.get(upload);
  }

  /** Whether another put stored the same bytes, so that what is read may be its own. */
  #hasTwin(writer: Writer): boolean {
    if (writer.verb === "rm") return false;
    return [...this.#writers.values()].some((other) => other !== writer && other.sha256 === writer.sha256);
  }

  #newestAcked(): Acked | undefined {
    return this.#acked.reduce<Acked | undefined>((a, b) => (a && a.generation > b.generation ? a : b), undefined);
  }

  #newestAckedBefore(generation: number): Acked | undefined {
    return this.#acked.find((acked) => acked.generation === generation);
  }
}

/** Reads the bytes of a manifest. */
export function seenRecord(bytes: Uint8Array): SeenRecord {
  const record = JSON.parse(Buffer.from(bytes).toString()) as Record<string, unknown>;
  return {
    generation: (record["generation"] as number | undefined) ?? 0,
    upload: (record["upload"] ?? record["version"]) as string | undefined,
    sha256: record["sha256"] as string | undefined,
    digest: hash("md5", bytes),
  };
}
