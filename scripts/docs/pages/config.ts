/** Prints the reference of `agarose.config.json` as Markdown, from the schema that checks the file. */
import { configReference } from "../config-reference.ts";

process.stdout.write(configReference());
