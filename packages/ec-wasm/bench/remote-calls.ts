/**
 * The far side of a measurement in another runtime: keeps the calls of the last work, runs the one that is asked for.
 */
import { kernelSupported } from "../js/load.ts";
import type { KernelName } from "../js/codec.ts";
import { callsFor, type Call } from "./ours.ts";
import type { Work } from "./subject.ts";

/** Asks for `iterations` of one implementation; without one, for the names of all. */
export interface RemoteRequest {
  readonly work: Work;
  readonly implementation?: string;
  readonly iterations?: number;
}

export type Modules = Readonly<Partial<Record<KernelName, WebAssembly.Module>>>;

let prepared: { key: string; calls: Call[] } | undefined;

/** Runs what was asked for and returns the names of all implementations. */
export function serve(request: RemoteRequest, modules: Modules): string[] {
  const key = JSON.stringify(request.work);
  if (prepared?.key !== key) prepared = { key, calls: allCalls(request.work, modules) };
  const call = prepared.calls.find(({ implementation }) => implementation === request.implementation);
  for (let i = 0; i < (request.iterations ?? 0); i++) call!.run();
  return prepared.calls.map(({ implementation }) => implementation);
}

function allCalls(work: Work, modules: Modules): Call[] {
  const builds = Object.entries(modules) as [KernelName, WebAssembly.Module][];
  return builds.filter(([name]) => kernelSupported(name)).flatMap(([name, module]) => callsFor(name, work, module));
}
