/**
 * The parts of the command line that its own tools use: its verbs, the reference that is generated from them, and
 * scenario files.
 */
export { cliReference } from "./lib/cli-reference.ts";
export { loadScenario } from "@agarose/dev-world/scenario-file";
export { buildProgram } from "./main.ts";
