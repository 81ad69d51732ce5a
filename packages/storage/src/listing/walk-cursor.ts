/** Where a walk over many objects is, in a file, so that a run after a kill continues there. */
import { readFile, rm } from "node:fs/promises";
import { AgaroseError } from "@agarose/core";
import * as v from "valibot";
import { shapeIn } from "../config/json.ts";
import { writeWholeFile } from "../files/whole-file.ts";
import type { Store } from "../buckets/store.ts";
import type { RegionConfig } from "../config/config.ts";

/** Where a walk is, and what it has found up to there. */
export interface Cursor<T> {
  /** The last key that an earlier run has done. Undefined at the start. */
  readonly after: string | undefined;
  /** The findings of an earlier run. */
  readonly totals: T | undefined;
  /** Notes that everything up to `key` is done. */
  pass(key: string, totals: T): Promise<void>;
  /** The walk is at its end. */
  end(totals: T): Promise<void>;
}

const SAVED = v.object({
  /** The buckets that are walked over: those of another deployment have other keys behind `after`. */
  buckets: v.string(),
  /** The verb and options of the walk, because a different walk must not continue here. */
  walk: v.string(),
  /** The last key that is done. */
  after: v.string(),
  /** The findings up to there. */
  totals: v.custom<object>((totals) => typeof totals === "object" && totals !== null),
});

/** The content of a cursor file. */
type Saved<T> = Readonly<Omit<v.InferOutput<typeof SAVED>, "totals">> & { readonly totals: T };

const SAVE_EVERY_MS = 250;

/** A cursor in a file. Without a path, it keeps nothing. */
export class WalkCursor<T> implements Cursor<T> {
  readonly #path: string | undefined;
  readonly #walk: string;
  readonly #buckets: string;
  #saved: Saved<T> | undefined;
  #savedMs = Number.NEGATIVE_INFINITY;

  private constructor(path: string | undefined, walk: string, buckets: string, saved: Saved<T> | undefined) {
    this.#path = path;
    this.#walk = walk;
    this.#buckets = buckets;
    this.#saved = saved;
  }

  /**
   * Opens the file at `path`, which may be absent. Throws USAGE when it is no cursor, is of another walk or of other
   * buckets, or has not the fields of `none`, the totals at the start: another version wrote it.
   */
  static async open<T>(
    path: string | undefined,
    walk: string,
    stores: readonly Store[],
    none: T,
  ): Promise<WalkCursor<T>> {
    const buckets = bucketsOf(stores.map(({ region }) => region));
    const text = path === undefined ? undefined : await readOptional(path);
    if (path === undefined || text === undefined) return new WalkCursor<T>(path, walk, buckets, undefined);
    const saved = shapeIn(SAVED, text) as Saved<T> | undefined;
    const isSame = saved?.walk === walk && saved.buckets === buckets;
    if (isSame && hasFieldsOf(none, saved.totals)) return new WalkCursor<T>(path, walk, buckets, saved);
    const what = !saved
      ? "is not a cursor"
      : isSame
        ? "is of another version of Agarose, which counts other things"
        : saved.walk === walk
          ? `is of other buckets (${saved.buckets}, not ${buckets})`
          : `is of another walk (${saved.walk}, not ${walk})`;
    throw new AgaroseError("USAGE", `${path} ${what}: remove it, or choose a different file`, { path });
  }

  get after(): string | undefined {
    return this.#saved?.after;
  }

  get totals(): T | undefined {
    return this.#saved?.totals;
  }

  /** Writes the file four times a second at most. DISK_FULL. */
  async pass(key: string, totals: T): Promise<void> {
    if (this.#path === undefined || performance.now() - this.#savedMs < SAVE_EVERY_MS) return;
    const saved: Saved<T> = { walk: this.#walk, buckets: this.#buckets, after: key, totals };
    // A kill leaves the file before or this one, never half of it.
    await writeWholeFile(this.#path, (write) => write(Buffer.from(JSON.stringify(saved))));
    this.#savedMs = performance.now();
  }

  /** Removes the file. */
  async end(): Promise<void> {
    if (this.#path !== undefined) await rm(this.#path, { force: true });
  }
}

/** The buckets of a deployment, in any order of its regions. */
export function bucketsOf(regions: readonly Pick<RegionConfig, "endpoint" | "bucket">[]): string {
  const names = regions.map(({ endpoint, bucket }) => `${endpoint.replace(/\/$/, "")}/${bucket}`);
  return names.toSorted().join(" ");
}

async function readOptional(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw new AgaroseError("USAGE", `${path} cannot be read: ${(error as Error).message}`, { path }, error);
  }
}

/** Whether each field of `none` is in `totals` with its type: sums over a missing field are never numbers. */
function hasFieldsOf(none: unknown, totals: unknown): boolean {
  const kinds = (value: unknown): Map<string, string> =>
    new Map(Object.entries(Object(value)).map(([name, one]) => [name, Array.isArray(one) ? "array" : typeof one]));
  const found = kinds(totals);
  return [...kinds(none)].every(([name, kind]) => found.get(name) === kind);
}
