/**
 * One walk over the keys below a prefix that stores objects again where their code or placement is not what the
 * configuration says: `recode`, and the second step of `migrate`.
 */
import type { Config } from "../config/config.ts";
import { layoutOf } from "../layout/object-layout.ts";
import { walkObjects, type Walk, type WalkOptions } from "../listing/walk-objects.ts";
import type { DeploymentParts } from "../parts.ts";
import { addNumbers } from "./add-numbers.ts";
import { NO_EFFORT, recodeListed, type Effort, type RecodeHow, type RecodeOutcome } from "./recode-listed.ts";

/** The task. */
export interface RecodeOptions extends WalkOptions, Pick<RecodeHow, "dryRun" | "moves"> {
  /** Says in the cursor file what this walk does. */
  readonly name: string;
  /** The configuration of a key. Default: that of the deployment. */
  readonly configOf?: (key: string) => Config;
  /** Called with each object that was not stored as it should be. */
  readonly onOutcome: (outcome: RecodeOutcome) => Promise<void>;
}

/** Sums over the objects that are listed. */
export interface RecodeTotals extends Effort {
  readonly objects: number;
  /** Stored again, or with `dryRun` to be. */
  readonly recoded: number;
  /** With `moves`: those whose manifest was copied, or is to be. */
  readonly completed?: number;
  readonly failed: number;
}

const OBJECTS_AT_A_TIME = 2;
const OBJECTS_AT_A_TIME_DRY = 16;

/**
 * Walks once. A failure of one object is an outcome. A dry run writes nothing.
 *
 * @throws LAYOUT_UNSAFE before anything else happens, and as `walkObjects` does.
 */
export async function recodeObjects(options: RecodeOptions, context: DeploymentParts): Promise<RecodeTotals> {
  const { name, dryRun = false, moves = false, configOf = () => context.config, onOutcome } = options;
  layoutOf(context.config, options.prefix ?? "", 0);
  const none: RecodeTotals = { objects: 0, recoded: 0, ...(moves && { completed: 0 }), failed: 0, ...NO_EFFORT };
  const walk: Walk<RecodeOutcome, RecodeTotals> = {
    name: `${name}${dryRun ? " dry" : ""} ${JSON.stringify(context.config.code)}`,
    options,
    objectsAtATime: dryRun ? OBJECTS_AT_A_TIME_DRY : OBJECTS_AT_A_TIME,
    act: (key, group) => recodeListed(group!, context, { dryRun, moves, config: configOf(key) }),
    add,
    onResult: (outcome) => (outcome.outcome === "current" ? Promise.resolve() : onOutcome(outcome)),
  };
  return walkObjects(walk, none, context);
}

function add(totals: RecodeTotals, result: RecodeOutcome): RecodeTotals {
  if (result.outcome === "failed") return addNumbers(totals, { objects: 1, failed: 1 });
  if (result.outcome === "current") return addNumbers(totals, { objects: 1 });
  const isRecoded = result.outcome === "recoded" || result.outcome === "due";
  return addNumbers(totals, { ...result.effort, objects: 1, [isRecoded ? "recoded" : "completed"]: 1 });
}
