/**
 * The local world of Agarose: region buckets behind emulated links, PoPs in workerd, and faults on demand.
 *
 * @module
 */
export { startControl, type Control } from "./control/control.ts";
export type { PopRuntime } from "./pops/mixed-pops.ts";
export type { Demo, DemoOptions, Page } from "./run/page.ts";
export { CONTINENTAL, geographyOf, popLatencyMs, TABLE_I, type Geography } from "./world/geography.ts";
export type { WorldState } from "./world/links.ts";
export { loadScenario } from "./world/scenario-file.ts";
export { worldOf } from "./world/scenario-world.ts";
export {
  NO_FAULTS,
  openLink,
  type Link,
  type LinkFaults,
  type LinkOptions,
  type LinkRecord,
} from "./world/wan-link.ts";
export { startWorld, type World } from "./world/world.ts";
export { openUploader, type Upload, type Uploader } from "./world/uploader.ts";
export { AccessLine } from "./world/access-line.ts";
export { WORLD_DEFAULTS, WORLDS, type WorldName, type WorldOptions } from "./world/world-options.ts";
