/** Asks the questions at a terminal. */
import { createInterface } from "node:readline/promises";
import type { Readable, Writable } from "node:stream";
import { problemOf, QUESTIONS, type Answers } from "./answers.ts";

interface Terminal {
  readonly input: Readable;
  readonly output: Writable;
}

/**
 * Asks what `given` leaves open, each question again until its answer is sound. An empty answer takes the default.
 * Rejects when the input ends or Ctrl-C is pressed.
 */
export async function ask(defaults: Answers, given: Partial<Answers>, terminal: Terminal): Promise<Answers> {
  const lines = createInterface(terminal);
  const ended = new AbortController();
  lines.once("close", () => ended.abort());
  const answers: Record<keyof Answers, string> = { ...defaults, ...given };
  try {
    for (const question of QUESTIONS.filter(({ field }) => given[field] === undefined)) {
      const { field, text, choices } = question;
      for (;;) {
        const shown = `${text} ${choices ? `(${choices.join(", ")}) ` : ""}[${answers[field]}] `;
        const typed = (await lines.question(shown, { signal: ended.signal })).trim();
        const answer = typed || answers[field];
        const problem = problemOf(question, answer);
        if (problem === undefined) {
          answers[field] = answer;
          break;
        }
        terminal.output.write(`  ${JSON.stringify(answer)} ${problem}\n`);
      }
    }
    return answers;
  } finally {
    lines.close();
  }
}
