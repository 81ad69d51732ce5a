/**
 * `@agarose/core`: errors, what a caller passes in, and `readObject`. Everything that must agree between the service
 * worker, the edge and the command line is in the rooms `async`, `content`, `encryption`, `format`, `http`, `read` and
 * `sources`.
 */

// Errors: one class, one code per cause.
export {
  AgaroseError,
  ERROR_CATALOGUE,
  explainError,
  PROGRAM_CODES,
  isOutdated,
  toAgaroseError,
  type ErrorCode,
  type ErrorDescription,
} from "./errors.ts";

// Ports: what core takes from its caller, and what a runtime has of it.
export type { Codec, Decoder, Shard } from "./codec.ts";
export {
  systemClock,
  systemPorts,
  systemSha256,
  type Clock,
  type FetchedResponse,
  type FetchInit,
  type FetchPort,
  type Ports,
  type Random,
  type Sha256,
} from "./ports.ts";

// A reader without a worker.
export { readObject, type ReadObjectOptions } from "./read-object.ts";
