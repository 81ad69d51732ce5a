/**
 * A local world in its own process, for tests and benchmarks: start it, break it, and see what crossed its links.
 *
 * @module
 */
export { Client, Pop, Region } from "./places.ts";
export type { WholeCopy } from "./control-client.ts";
export { findCli, LocalWorld, type LocalWorldOptions, type PutFileOptions } from "./local-world.ts";
export type { KvState } from "../pops/kv-fault.ts";
export type { LinkFaults, LinkRecord } from "../world/wan-link.ts";
