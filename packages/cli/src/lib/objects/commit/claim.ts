/**
 * Claims: how a writer makes a generation of a key its own, so that equal generations mean equal manifests.
 *
 * The writer that creates the claim in a majority of the regions has the generation. Two majorities overlap, and only
 * one conditional write of a name succeeds, so no second writer can have it.
 */
import { AgaroseError } from "@agarose/core";
import type { Store } from "../../store/store.ts";
import { askRegions, isConditionFailed } from "./ask-regions.ts";
import { claimName } from "./names.ts";
import { surveyRegions } from "./region-survey.ts";
import { majorityOf, pause, type WriteContext } from "./write-context.ts";

const ATTEMPTS_MAX = 8;

/**
 * Claims a generation above `newest` and returns it.
 *
 * @param upload marks the claim as this writer's.
 * @throws NO_QUORUM when no majority answers, REPLACED_MEANWHILE when other writers win every time.
 */
export async function claimGeneration(
  key: string,
  upload: string,
  newest: number,
  context: WriteContext,
): Promise<number> {
  const { stores } = context;
  const needed = majorityOf(stores);
  let generation = newest + 1;
  for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt++) {
    const name = claimName(key, generation);
    const claim = (store: Store, signal: AbortSignal): Promise<boolean> => claimIn(store, name, upload, signal);
    const outcomes = await askRegions(stores, claim, { enough: needed }, context);
    const answered = outcomes.filter(({ error }) => error === undefined);
    if (answered.filter(({ value }) => value).length >= needed) return generation;
    if (answered.length < needed) {
      const first = outcomes.find(({ error }) => error)!.error!;
      throw new AgaroseError(
        first.code === "CREDENTIALS_REFUSED" ? first.code : "NO_QUORUM",
        `${answered.length} of ${stores.length} regions took a claim to ${JSON.stringify(key)}, ${needed} are needed: ` +
          `readers see the version before; try again once they answer. First: ${first.message}`,
        { key, answered: answered.length, needed },
        first,
      );
    }
    await pause(attempt, context);
    const survey = await surveyRegions(key, context);
    generation = Math.max(generation, survey.newest?.generation ?? 0) + 1;
  }
  throw new AgaroseError(
    "REPLACED_MEANWHILE",
    `${ATTEMPTS_MAX} of ${ATTEMPTS_MAX} attempts to claim ${JSON.stringify(key)} met other writers: try again later`,
    { key, attempts: ATTEMPTS_MAX },
  );
}

/** Removes the claims to the generations given. What stays behind is left to the garbage collector. */
export async function removeClaims(key: string, generations: readonly number[], context: WriteContext): Promise<void> {
  const names = generations.map((generation) => claimName(key, generation));
  const remove = (store: Store): Promise<unknown> => store.remove(names);
  await askRegions(context.stores, remove, { enough: majorityOf(context.stores) }, context);
}

/** Whether the claim in this region is ours. */
async function claimIn(store: Store, name: string, upload: string, signal: AbortSignal): Promise<boolean> {
  const body = Buffer.from(JSON.stringify({ upload }));
  const options = { bytes: body.length, contentType: "application/json", signal };
  try {
    await store.put(name, body, { ...options, ifNoneMatch: "*" });
    return true;
  } catch (error) {
    if (!isConditionFailed(error)) throw error;
    // An earlier try of the same request may have succeeded without our knowing.
    const response = await store.get(name, { signal });
    const text = response.status === 200 ? await new Response(response.body as BodyInit).text() : "";
    return text === body.toString();
  }
}
