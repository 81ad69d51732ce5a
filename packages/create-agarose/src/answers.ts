/** The five questions, what they are answered with by default, and which answers are sound. Pure. */
import { AgaroseError } from "@agarose/core";
import { AREAS } from "./areas.ts";

/** The answers that determine a project. */
export interface Answers {
  readonly name: string;
  /** Where most readers are: a key of `AREAS`. */
  readonly readers: string;
  /** The prefix of the buckets' names. */
  readonly buckets: string;
  /** How many regions may be lost at once: `1` or `2`. */
  readonly survive: string;
  /** `pops`: a Worker at each place. `everywhere`: one Worker in all places. */
  readonly workers: string;
}

interface Question {
  readonly field: keyof Answers;
  readonly text: string;
  /** All possible answers. Undefined: any that `problem` accepts. */
  readonly choices?: readonly string[];
  readonly problem?: (answer: string) => string | undefined;
}

/** `-ap-southeast-2` or `-gcs-belgium` follows, and the name of a bucket has at most 63 characters. */
const BUCKETS_CHARACTERS_MAX = 48;

/** In the order in which they are asked. */
export const QUESTIONS: readonly Question[] = [
  {
    field: "name",
    text: "Name of the project",
    problem: (name) =>
      /^[a-z0-9][a-z0-9._-]{0,99}$/.test(name)
        ? undefined
        : "cannot be the name of a package: up to 100 lower-case letters, digits, and . _ -",
  },
  { field: "readers", text: "Where are most readers?", choices: Object.keys(AREAS) },
  {
    field: "buckets",
    text: "What do the names of your buckets begin with?",
    problem: (buckets) =>
      /^[a-z0-9][a-z0-9-]*$/.test(buckets) && buckets.length <= BUCKETS_CHARACTERS_MAX
        ? undefined
        : `begins no name of a bucket: up to ${BUCKETS_CHARACTERS_MAX} lower-case letters, digits, and -`,
  },
  { field: "survive", text: "How many regions may be lost at once?", choices: ["1", "2"] },
  { field: "workers", text: "A Worker at each place, or one everywhere?", choices: ["pops", "everywhere"] },
];

/** The answers of somebody who only names the folder. */
export function defaultAnswers(folderName: string): Answers {
  const name =
    folderName
      .toLowerCase()
      .replace(/[^a-z0-9]+/g, "-")
      .replace(/^-+|-+$/g, "")
      .slice(0, BUCKETS_CHARACTERS_MAX) || "agarose-app";
  return { name, readers: "europe", buckets: name, survive: "1", workers: "pops" };
}

/** The problem of an answer to one question. */
export function problemOf({ choices, problem }: Question, answer: string): string | undefined {
  if (choices && !choices.includes(answer)) return `is not one of ${choices.join(", ")}`;
  return problem?.(answer);
}

/** Returns the answers. Throws USAGE for the first wrong one. */
export function checkAnswers(answers: Answers): Answers {
  for (const question of QUESTIONS) {
    const answer = answers[question.field];
    const problem = problemOf(question, answer);
    if (problem === undefined) continue;
    const message = `${JSON.stringify(answer)} ${problem}: give --${question.field} another value`;
    throw new AgaroseError("USAGE", message, { field: question.field, answer });
  }
  return answers;
}
