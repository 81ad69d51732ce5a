/** Keeps the planner of a PoP from one plan to the next. */
import { Planner, type PlannerOptions } from "@agarose/solver/planner";
import { decodePlannerState } from "./planner-state.ts";

/** Objects that one period may save, on average. */
const SAVED_A_PERIOD = 4_096;

/**
 * The planner in the memory of the PoP's state, which spares each plan the reading and writing of all that is known. *
 * The state that a period saves is for the next instance of the object.
 */
export class PlannerKeeper {
  #planner: Planner | undefined;
  /** Objects that periods could have saved since the last one that did. */
  #unsaved = 0;

  /** Resolves to the planner for these options: the kept one, or one that continues from what `load` resolves to. */
  async planner(options: PlannerOptions, load: () => Promise<Uint8Array | undefined>): Promise<Planner> {
    if (this.#planner?.configure(options)) return this.#planner;
    const saved = await load();
    // A platform that evicts the object between two periods would lose all of them.
    this.#unsaved = Number.POSITIVE_INFINITY;
    return (this.#planner = new Planner(options, saved && decodePlannerState(saved)));
  }

  /**
   * Returns whether the state is to be saved after a period that knows so many objects: at once in a new instance, and
   * then the less often the more is known, so that a minute saves about as much as 4,096 objects have.
   */
  mustSave(known: number): boolean {
    this.#unsaved += SAVED_A_PERIOD;
    if (this.#unsaved < known) return false;
    this.#unsaved = 0;
    return true;
  }

  /** Drops the planner, after a plan that has failed. */
  forget(): void {
    this.#planner = undefined;
  }
}
