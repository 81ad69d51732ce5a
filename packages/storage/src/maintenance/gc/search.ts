/** Parameters and result of a search for garbage. */
/** The keys to search, and the action. */
export interface GarbageSearch {
  /** Begins the keys to look at; "" for all. */
  readonly prefix: string;
  /** How long a mark must have been there before its upload is deleted. */
  readonly olderThanMs: number;
  /** Whether to mark and delete, or only to look. */
  readonly removes: boolean;
  /**
   * Whether to remove old tombstones as well. Their keys then begin at generation 1 again, below old manifests that a
   * hostile bucket may have kept. Default false.
   */
  readonly forgets?: boolean;
  /** The key after which to begin, and what was found up to there. Default: from the first key. */
  readonly resumed?: { readonly after: string; readonly report: GarbageReport };
  /** Receives each key once it is done with, and what was found so far. */
  readonly onKey?: (key: string, report: GarbageReport) => Promise<void>;
  /** Receives each upload once it is done with, so that memory does not grow with them. */
  readonly onUpload: (upload: GarbageUpload) => unknown;
}

/** An upload that no manifest names. */
export interface GarbageUpload {
  readonly key: string;
  readonly upload: string;
  readonly chunks: number;
  readonly bytes: number;
  /**
   * - `unmarked`: found, and nothing was done.
   * - `marked`: marked now.
   * - `waiting`: its mark is too young, or its put may still run.
   * - `removed`: deleted.
   * - `left`: some of it could not be deleted.
   */
  readonly state: "unmarked" | "marked" | "waiting" | "removed" | "left";
}

/** Findings and actions. */
export interface GarbageReport {
  /** How many were found, and their bytes. */
  readonly found: number;
  readonly bytes: number;
  /** Claims to generations that are committed, and tombstones to be forgotten that every region has had for 30 days. */
  readonly claimsRemoved: number;
  readonly tombstonesRemoved: number;
  /** Copies of replaced manifests that were kept for long enough. */
  readonly copiesRemoved: number;
  /** Keys of which nothing was touched, because a region could not say what it names. */
  readonly skipped: readonly { readonly key: string; readonly problem: string }[];
  /** Objects that could not be removed. */
  readonly leftovers: readonly { readonly region: string; readonly name: string; readonly problem: string }[];
}

/** A report that is being written. */
export type Mutable<T> = { -readonly [K in keyof T]: T[K] extends readonly (infer U)[] ? U[] : T[K] };
