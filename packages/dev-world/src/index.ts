/** The local world: region buckets behind emulated links, PoPs in workerd, and faults on demand. */
export { startControl } from "./control/control.ts";
export { geographyOf, popLatencyMs, TABLE_I, type Geography } from "./world/geography.ts";
export { given, worldOf } from "./world/scenario-world.ts";
export { NO_FAULTS, openLink, type Link, type LinkFaults, type LinkRecord } from "./world/wan-link.ts";
export { startWorld, type KvState, type World, type WorldState } from "./world/world.ts";
export { WORLD_DEFAULTS, type WorldOptions } from "./world/world-options.ts";
