/**
 * Makes sure that the newest version of a key is one that a majority holds, before anything is decided by it.
 *
 * A version that only a minority holds may be of a writer that is active, that is undoing it, or that has died. So it
 * is looked at again for a while. A version that stays so gets its own generation, by the protocol of every writer.
 */
import { AgaroseError } from "@agarose/core";
import type { ManifestRecord } from "@agarose/core/format";
import { compareAge, surveyRegions, type Survey } from "./region-survey.ts";
import { enqueueRepair } from "../commit/repair-queue.ts";
import { majorityOf, pause, type WriteContext } from "../commit/write-context.ts";
import { commitAgainIfNewest } from "../commit/commit.ts";

/** Looks at a key whose newest version is in a minority, with pauses that double: one to three seconds in all. */
export const LOOKS = 5;
/** Other writers may come between a look and the completion. */
const COMPLETIONS_MAX = 4;

/**
 * * The objects of the regions, the newest of them in a majority. A writer that depends on the present version uses
 * this.
 *
 * @throws what `surveyRegions` and `completeNewest` throw, and REPLACED_MEANWHILE when other writers come between every
 *   time.
 */
export async function settledSurvey(key: string, context: WriteContext): Promise<Survey> {
  for (let attempt = 1; ; attempt++) {
    const survey = await surveyRegions(key, context);
    if (isSettled(survey)) return survey;
    if (attempt >= LOOKS) {
      if (attempt === LOOKS + COMPLETIONS_MAX) throw overtaken(key, attempt);
      await completeNewest(survey, context);
    } else await pause(attempt, context);
  }
}

/**
 * Gives what a minority holds, if it is the newest, its own generation in a majority. Undefined when another
 * writer came between. It throws as `commitAgain` does, or why a region's copy is unusable: that may be a newer one.
 */
export async function completeNewest(survey: Survey, context: WriteContext): Promise<ManifestRecord | undefined> {
  const problem = survey.regions.find(({ state }) => state === "invalid" || state === "untrusted")?.problem;
  if (problem) throw problem;
  const { newest } = survey;
  if (!newest || isSettled(survey)) return undefined;
  const commit = await commitAgainIfNewest(newest, survey, context);
  if (!commit) return undefined;
  const { key, generation } = commit.record;
  const regions = commit.regionsWithout.map(({ region }) => region);
  await enqueueRepair({ key, generation, missing: [], regions }, context);
  return commit.record;
}

/** Whether a majority holds the newest record, or nothing where there is none. */
function isSettled({ regions, newest }: Survey): boolean {
  const isHolder = ({ state, record }: Survey["regions"][number]): boolean =>
    newest === undefined ? state === "absent" : record !== undefined && compareAge(record, newest) === 0;
  return regions.filter(isHolder).length >= majorityOf(regions);
}

function overtaken(key: string, attempts: number): AgaroseError {
  const message = `${attempts} of ${attempts} looks at ${JSON.stringify(key)} met other writers: try again later`;
  return new AgaroseError("REPLACED_MEANWHILE", message, { key, attempts });
}
