/** Prints the reference of the command line as Markdown: the help of `agarose` and of each of its verbs. */
import { buildProgram, cliReference } from "agarose";

process.stdout.write(cliReference(await buildProgram([])));
