/**
 * `@agarose/core/testing`: fakes, sample data and tables of cases for the tests of other packages. It is never
 * published: `package.json` leaves this folder out of `files`.
 */
export { CountingSignal } from "./counting-signal.ts";
export { attempt, codeOf, errorOf, rejectionOf } from "./errors.ts";
export { FakeNetwork, type Answer, type FakeRequest } from "./fake-fetch.ts";
export { FakeSource, type Behaviour, type FakeSourceOptions } from "./fake-source.ts";
export { offencesOf } from "./hostile-input.ts";
export { mapFile, type TileId } from "./objects/map-file.ts";
export {
  emptyObjectCases,
  mediaProbes,
  rangeCases,
  type RangeAnswer,
  type RangeCase,
  type RangedObject,
} from "./objects/range-cases.ts";
export { collect, ReadWorld } from "./read-world.ts";
export { referenceCodec } from "./objects/reference-codec.ts";
export {
  hex,
  pseudoRandomBytes,
  sampleObject,
  toyHash,
  type SampleObject,
  type SampleOptions,
} from "./objects/sample-object.ts";
export { settle, SimulatedClock } from "./simulated-clock.ts";
export { streamOf, type StreamOptions } from "./streams.ts";
export { testPublisher, type TestPublisher } from "./objects/publisher.ts";
