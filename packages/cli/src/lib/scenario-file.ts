/** Scenario files, which `simulate` plays and a local world is built from. */
export { loadScenario, unreadable } from "@agarose/dev-world/scenario-file";
