/**
 * Prints docs/reference/errors.md, from the catalogue in packages/core/src/errors.ts. `npm run docs:reference` writes
 * it.
 */
import { AgaroseError, ERROR_CATALOGUE, PROGRAM_CODES, type ErrorCode, type ErrorDescription } from "@agarose/core";
import { table } from "../table.ts";

const PROGRAM: readonly ErrorCode[] = PROGRAM_CODES;

const errors = Object.entries(ERROR_CATALOGUE) as [ErrorCode, ErrorDescription][];
const served = errors.filter(([code]) => !PROGRAM.includes(code));
const ofPrograms = errors.filter(([code]) => PROGRAM.includes(code));

console.log(`# Errors

<!-- Generated from packages/core/src/errors.ts by npm run docs:reference. Do not edit. -->

Every failure of Agarose has one of these codes. You find it in \`error.code\`, in the \`x-agarose-error\` header and the
JSON body of an error response, and in the output of the command line.

\`error.message\` describes the failure, with both numbers and the next step, and \`error.details\` carries the same facts
for programs. The published service worker files omit the words to stay small, so that their message is the code.

## Errors of reads and of the edge

${table(
  ["code", "HTTP", "meaning", "what to do"],
  served.map(([code, { meaning, remedy }]) => [
    `\`${code}\``,
    String(new AgaroseError(code, false).httpStatus),
    meaning,
    remedy,
  ]),
)}
## Errors of programs

The command line and the simulator report these. No HTTP response has them.

${table(
  ["code", "meaning", "what to do"],
  ofPrograms.map(([code, { meaning, remedy }]) => [`\`${code}\``, meaning, remedy]),
)}`);
