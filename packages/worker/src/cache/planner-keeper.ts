/** Keeps the planner of a PoP from one plan to the next. */
import { Planner, type PlannerOptions } from "@agarose/solver/planner";
import { decodePlannerState } from "./planner-state.ts";

/**
 * The planner in the memory of the PoP's state, which spares each plan the reading and writing of all that is known. *
 * The state that a period saves is for the next instance of the object.
 */
export class PlannerKeeper {
  #planner: Planner | undefined;

  /** Resolves to the planner for these options: the kept one, or one that continues from what `load` resolves to. */
  async planner(options: PlannerOptions, load: () => Promise<Uint8Array | undefined>): Promise<Planner> {
    if (this.#planner?.configure(options)) return this.#planner;
    const saved = await load();
    return (this.#planner = new Planner(options, saved && decodePlannerState(saved)));
  }

  /** Drops the planner, after a plan that has failed. */
  forget(): void {
    this.#planner = undefined;
  }
}
