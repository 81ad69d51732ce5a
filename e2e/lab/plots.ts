/** What the lab shows: each plot compares systems that read the same objects in the same world under the same fault. */

/** One system in a plot. */
export interface PlotRow {
  readonly system: string;
  /** Undefined where every read failed. */
  readonly meanMs: number | undefined;
  readonly p99Ms: number | undefined;
  /** What `Plot.noteHead` names. */
  readonly note: string;
}

/** Systems side by side. */
export interface Plot {
  readonly question: string;
  readonly way: "real" | "simulated";
  readonly world: string;
  readonly fault: string;
  readonly noteHead: string;
  readonly rows: readonly PlotRow[];
  /** How it can be repeated: the seed, or machine and date. */
  readonly origin: string;
}

export const QUESTIONS = {
  policies: "Which policy?",
  ablation: "What does each idea bring?",
  layouts: "Which layout, under which fault?",
} as const;
