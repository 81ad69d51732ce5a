import type { Decoder } from "../src/codec.ts";
import { openRead, type ObjectRead } from "../src/read/object-stream.ts";
import type { ReadContext, ReadObserver, ReadPolicy, ReadTarget } from "../src/read/read-options.ts";
import { FakeSource, type FakeSourceOptions } from "./fake-source.ts";
import { referenceCodec } from "./objects/reference-codec.ts";
import { toyHash, type SampleObject } from "./objects/sample-object.ts";
import { SimulatedClock } from "./simulated-clock.ts";

/** How a test reads: all that a read takes, in one object. */
export interface ReadWorldOptions extends Partial<ReadTarget & ReadContext>, ReadPolicy, ReadObserver {}

/** An object in its regions, with a fake source for each of them, on a clock of their own. */
export class ReadWorld {
  readonly clock = new SimulatedClock();
  readonly object: SampleObject;
  readonly sources: FakeSource[];
  /** How often the codec was loaded. */
  codecLoads = 0;

  /** @param optionsOf how the source of region number `i` behaves. */
  constructor(object: SampleObject, optionsOf: (region: string, i: number) => Partial<FakeSourceOptions> = () => ({})) {
    this.object = object;
    this.sources = [...new Set(object.manifest.placement)].map(
      (id, i) => new FakeSource({ id, object, clock: this.clock, ...optionsOf(id, i) }),
    );
  }

  open(options: ReadWorldOptions = {}): Promise<ObjectRead> {
    const codec = async (): Promise<Decoder> => {
      this.codecLoads++;
      return referenceCodec;
    };
    return openRead(
      { manifest: this.object.manifest, sources: this.sources, ...options },
      { codec, clock: this.clock, sha256: toyHash, random: () => 0, ...options },
      options,
      options,
    );
  }

  /** Returns all bytes of a read. */
  async read(options: ReadWorldOptions = {}): Promise<Uint8Array> {
    return this.clock.run(this.open(options).then(({ body }) => collect(body)));
  }

  /** The requested stripes, in the order of their first request. */
  stripesAsked(): number[] {
    const requests = this.sources.flatMap((source) => source.requests);
    return [...new Set(requests.toSorted((a, b) => a.at - b.at || a.stripe - b.stripe).map(({ stripe }) => stripe))];
  }

  /** The number of requests, over all sources. */
  requests(): number {
    return this.sources.reduce((sum, { requests }) => sum + requests.length, 0);
  }
}

/** Returns all bytes of a body. */
export async function collect(body: ReadableStream<Uint8Array>): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  const reader = body.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    parts.push(value);
  }
  const whole = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}
