/** Prints the reference of the Worker's variables as Markdown, from the schemas that check them. */
import { workerReference } from "@agarose/worker/reference";

process.stdout.write(workerReference());
