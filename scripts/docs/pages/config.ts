/** Prints the reference of `agarose.config.json` as Markdown, from the schema that checks the file. */
import { configReference } from "@agarose/storage/config/config-reference";

process.stdout.write(configReference());
