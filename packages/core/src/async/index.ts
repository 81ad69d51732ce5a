/** `@agarose/core/async`: coalescing, bounded concurrency, and streams that are pulled. */
export { Flights, once, orUndefined, succeeds, within, type Flight } from "./coalesce.ts";
export { inParallel, Limiter, type Waiting } from "./limiter.ts";
export { pullStream, streamOf, type Pulled, type PullSink, type PullSource } from "../pull-stream.ts";
