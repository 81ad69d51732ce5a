/**
 * Which generations a writer may claim. Batches have every tenth to themselves, so that a batch and a claim to one key
 * never claim the same generation, and need not look for each other.
 */

const BATCH_STEP = 10;

/** Whether a version is the first one of its key, as far as its generation shows. PoPs have no older one then. */
export function isFirst(generation: number): boolean {
  return generation === 1 || generation === BATCH_STEP;
}

/** The first generation after `generation` that its own claim may take. */
export function singleAfter(generation: number): number {
  return (generation + 1) % BATCH_STEP === 0 ? generation + 2 : generation + 1;
}

/** The first generation after `generation` that a batch may take. The first one of all is of a key that had none. */
export function batchAfter(generation: number): number {
  const passed = generation > 0 ? Math.max(generation, BATCH_STEP) : 0;
  return (Math.floor(passed / BATCH_STEP) + 1) * BATCH_STEP;
}
