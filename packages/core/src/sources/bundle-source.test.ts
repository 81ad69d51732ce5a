import { describe, expect, test } from "vitest";
import { CountingSignal } from "../../test/counting-signal.ts";
import { rejectionOf } from "../../test/errors.ts";
import { settle } from "../../test/simulated-clock.ts";
import { bundleSource } from "./bundle-source.ts";
import { encodeFrame } from "../format/bundle.ts";
import { FrameReader } from "./frame-reader.ts";

describe("a bundle source", () => {
  test("delivers chunks as their frames come, in any order of requests", async () => {
    const pop = new FakePop();
    const second = pop.fetch(0, 2);
    const first = pop.fetch(0, 1);
    pop.chunk(0, 1);
    pop.chunk(0, 2);
    expect(await first).toEqual(pop.payload(0, 1));
    expect(await second).toEqual(pop.payload(0, 2));
  });

  test("keeps a chunk that comes before its request", async () => {
    const pop = new FakePop();
    const second = pop.fetch(0, 2);
    pop.chunk(0, 1);
    pop.chunk(0, 2);
    await second;
    expect(await pop.fetch(0, 1)).toEqual(pop.payload(0, 1));
  });

  test("delivers kept chunks after the bundle has ended", async () => {
    const pop = new FakePop();
    const later = pop.fetch(1, 2);
    pop.chunk(0, 1);
    pop.miss(0, 3);
    pop.end();
    expect((await rejectionOf(later)).code).toBe("CHUNK_MISSING");
    expect(await pop.fetch(0, 1)).toEqual(pop.payload(0, 1));
    expect((await rejectionOf(pop.fetch(0, 3))).code).toBe("CHUNK_MISSING");
    expect((await rejectionOf(pop.fetch(0, 4))).code).toBe("CHUNK_MISSING");
  });

  test("rejects a miss with its stripe and chunk", async () => {
    const pop = new FakePop();
    const waiter = pop.fetch(2, 1);
    pop.miss(2, 1);
    expect(await rejectionOf(waiter)).toMatchObject({ code: "CHUNK_MISSING", details: { stripe: 2, chunk: 1 } });
  });

  test("rejects a chunk when a later stripe begins, because frames come in stripe order", async () => {
    const pop = new FakePop();
    const passed = rejectionOf(pop.fetch(0, 1));
    const coming = pop.fetch(1, 1);
    pop.chunk(1, 1);
    expect((await passed).code).toBe("CHUNK_MISSING");
    expect(await coming).toEqual(pop.payload(1, 1));
  });

  test("rejects a chunk of a passed stripe without reading on", async () => {
    const pop = new FakePop();
    const waiter = pop.fetch(1, 1);
    pop.chunk(1, 1);
    await waiter;
    const pulls = pop.pulls;
    expect((await rejectionOf(pop.fetch(0, 1))).code).toBe("CHUNK_MISSING");
    expect(pop.pulls).toBe(pulls);
  });

  test("skips a plan among its frames", async () => {
    const pop = new FakePop();
    const waiter = pop.fetch(0, 1);
    pop.send(encodeFrame("plan", 0, 0, new Uint8Array(3)));
    pop.chunk(0, 1);
    expect(await waiter).toEqual(pop.payload(0, 1));
  });

  test("reads frames only while a request waits", async () => {
    const pop = new FakePop();
    await settle();
    expect(pop.pulls).toBe(0);
    const waiter = pop.fetch(0, 1);
    for (let chunk = 1; chunk < 5; chunk++) pop.chunk(0, chunk);
    await waiter;
    await settle();
    expect(pop.queued).toBe(3);
  });

  test("serves requests that were made while the frames were pending", async () => {
    const pop = new FakePop({ pending: true });
    const waiter = pop.fetch(0, 1);
    await settle();
    pop.begin();
    pop.chunk(0, 1);
    expect(await waiter).toEqual(pop.payload(0, 1));
  });

  describe("when an abort comes", () => {
    test("rejects that request only", async () => {
      const pop = new FakePop();
      const abort = new AbortController();
      const counting = new CountingSignal(abort.signal);
      const aborted = rejectionOf(pop.fetch(0, 1, abort.signal));
      const other = pop.fetch(0, 2);
      abort.abort();
      expect((await aborted).code).toBe("ABORTED");
      pop.chunk(0, 1);
      pop.chunk(0, 2);
      expect(await other).toEqual(pop.payload(0, 2));
      expect(counting.listeners).toBe(0);
    });

    test("rejects at once, also while the frames are pending or the signal was aborted before", async () => {
      const pop = new FakePop({ pending: true });
      const abort = new AbortController();
      const waiting = rejectionOf(pop.fetch(0, 1, abort.signal));
      abort.abort();
      expect((await waiting).code).toBe("ABORTED");
      expect((await rejectionOf(pop.fetch(0, 2, abort.signal))).code).toBe("ABORTED");
    });

    test("stops reading when no other request waits", async () => {
      const pop = new FakePop();
      const abort = new AbortController();
      const aborted = rejectionOf(pop.fetch(0, 3, abort.signal));
      await settle();
      abort.abort();
      await aborted;
      for (let chunk = 0; chunk < 5; chunk++) pop.chunk(0, chunk);
      await settle();
      // The read that was under way takes one frame; the other four stay where they are.
      expect(pop.queued).toBe(4);
    });
  });

  test("removes its listener when a chunk has come", async () => {
    const pop = new FakePop();
    const counting = new CountingSignal(new AbortController().signal);
    const waiter = pop.fetch(0, 1, counting.signal);
    pop.chunk(0, 1);
    await waiter;
    expect(counting.listeners).toBe(0);
  });

  describe("when the bundle fails", () => {
    const failures: Record<string, [(pop: FakePop) => void, string]> = {
      "by breaking off": [(pop) => pop.error(new TypeError("connection reset")), "SOURCE_FAILED"],
      "by ending early": [(pop) => pop.close(), "BUNDLE_INVALID"],
      "with garbage": [(pop) => pop.send(new Uint8Array(40).fill(0xee)), "BUNDLE_INVALID"],
    };
    for (const [how, [fail, code]] of Object.entries(failures)) {
      test(`${how}, rejects waiting and later requests`, async () => {
        const pop = new FakePop();
        const waiters = [rejectionOf(pop.fetch(0, 1)), rejectionOf(pop.fetch(3, 2))];
        fail(pop);
        expect((await Promise.all(waiters)).map((error) => error.code)).toEqual([code, code]);
        expect((await rejectionOf(pop.fetch(5, 1))).code).toBe(code);
      });
    }

    test("with garbage, cancels the body", async () => {
      const pop = new FakePop();
      const waiter = rejectionOf(pop.fetch(0, 1));
      pop.send(new Uint8Array(12).fill(0xee));
      await waiter;
      await settle();
      expect(pop.cancelled).toBe(true);
    });

    test("before its first frame, rejects waiting requests, and reports nothing without one", async () => {
      const pop = new FakePop({ pending: true });
      const waiter = rejectionOf(pop.fetch(0, 1));
      pop.refuse(new TypeError("no route"));
      expect((await waiter).code).toBe("SOURCE_FAILED");
      const alone = new FakePop({ pending: true });
      alone.refuse(new TypeError("no route"));
      await settle();
    });
  });

  describe("release", () => {
    test("drops the chunks of a stripe, kept and later ones", async () => {
      const pop = new FakePop();
      const waiter = pop.fetch(1, 1);
      pop.chunk(0, 1);
      pop.chunk(0, 2);
      pop.chunk(1, 1);
      await waiter;
      pop.source.release(0);
      expect(await pop.isKept(0, 1)).toBe(false);
      expect(await pop.isKept(0, 2)).toBe(false);
      const later = pop.fetch(2, 1);
      pop.source.release(1);
      pop.chunk(1, 2);
      pop.chunk(2, 1);
      await later;
      expect(await pop.isKept(1, 2)).toBe(false);
    });

    test("does not confuse stripe 1 with stripe 11", async () => {
      const pop = new FakePop();
      const waiter = pop.fetch(12, 1);
      pop.chunk(11, 1);
      pop.chunk(12, 1);
      await waiter;
      pop.source.release(1);
      expect(await pop.fetch(11, 1)).toEqual(pop.payload(11, 1));
    });
  });

  test("closing cancels the bundle, rejects waiting requests and keeps nothing", async () => {
    const pop = new FakePop();
    const waiter = pop.fetch(0, 2);
    pop.chunk(0, 1);
    await settle();
    const rejected = rejectionOf(waiter);
    pop.source.close();
    expect((await rejected).code).toBe("ABORTED");
    expect(pop.cancelled).toBe(true);
    expect((await rejectionOf(pop.fetch(0, 1))).code).toBe("ABORTED");
    pop.source.close();
  });

  test("reports when its plan caches more than was believed, and keeps those chunks for later requests", async () => {
    const pop = new FakePop({ cached: [1], pending: true });
    let updated = false;
    void pop.source.updated!.then(() => (updated = true));
    await settle();
    expect([updated, pop.source.has(0, 3)]).toEqual([false, false]);
    pop.cached = [1, 3];
    pop.begin();
    await settle();
    expect([updated, pop.source.has(0, 3)]).toEqual([true, true]);
    pop.chunk(0, 1);
    pop.chunk(0, 3);
    expect(await pop.fetch(0, 3)).toEqual(pop.payload(0, 3));
    expect(await pop.fetch(0, 1)).toEqual(pop.payload(0, 1));
  });

  test("follows a plan that caches other chunks than was believed", async () => {
    const pop = new FakePop({ cached: [1, 2], pending: true });
    const gone = rejectionOf(pop.fetch(0, 2));
    const stays = pop.fetch(0, 1);
    pop.cached = [1, 3];
    pop.begin();
    expect((await gone).code).toBe("CHUNK_MISSING");
    expect([1, 2, 3].filter((chunk) => pop.source.has(0, chunk))).toEqual([1, 3]);
    pop.chunk(0, 1);
    expect(await stays).toEqual(pop.payload(0, 1));
  });
});

/** A PoP whose bundle is sent frame by frame. */
class FakePop {
  readonly source: ReturnType<typeof bundleSource>;
  /** As believed; then as its plan says. */
  cached: readonly number[];
  pulls = 0;
  cancelled = false;
  #queue: Uint8Array[] = [];
  #ending: (() => void) | undefined;
  #wake = (): void => {};
  #controller!: ReadableStreamDefaultController<Uint8Array>;
  readonly #frames = Promise.withResolvers<FrameReader>();
  readonly #body: ReadableStream<Uint8Array>;

  constructor({ pending = false, cached = [0, 1, 2, 3] }: { pending?: boolean; cached?: readonly number[] } = {}) {
    this.cached = cached;
    this.#body = new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          this.#controller = controller;
        },
        pull: async () => {
          this.pulls++;
          while (this.#queue.length === 0 && !this.#ending) await new Promise<void>((wake) => (this.#wake = wake));
          const part = this.#queue.shift();
          if (part) this.#controller.enqueue(part);
          else this.#ending?.();
        },
        cancel: () => {
          this.cancelled = true;
        },
      },
      { highWaterMark: 0 },
    );
    this.source = bundleSource({
      id: "fra",
      latency: () => ({ meanMs: 20, sdMs: 5 }),
      cached: () => this.cached,
      frames: this.#frames.promise,
    });
    if (!pending) this.begin();
  }

  /** Frames that were sent and not read. */
  get queued(): number {
    return this.#queue.length;
  }

  begin(): void {
    this.#frames.resolve(new FrameReader(this.#body));
  }

  refuse(error: Error): void {
    this.#frames.reject(error);
  }

  send(bytes: Uint8Array): void {
    this.#queue.push(bytes);
    this.#wake();
  }

  chunk(stripe: number, chunk: number): void {
    this.send(encodeFrame("chunk", stripe, chunk, this.payload(stripe, chunk)));
  }

  miss(stripe: number, chunk: number): void {
    this.send(encodeFrame("miss", stripe, chunk, new Uint8Array(0)));
  }

  end(): void {
    this.send(encodeFrame("end", 0, 0, new Uint8Array(0)));
  }

  error(error: Error): void {
    this.#ending = () => this.#controller.error(error);
    this.#wake();
  }

  close(): void {
    this.#ending = () => this.#controller.close();
    this.#wake();
  }

  payload(stripe: number, chunk: number): Uint8Array {
    return new Uint8Array([stripe, chunk, 1, 2, 3]);
  }

  fetch(stripe: number, chunk: number, signal = new AbortController().signal): Promise<Uint8Array> {
    const shape = { index: stripe, start: 0, dataBytes: 5, shardBytes: 5, chunkOffset: 0 };
    return this.source.fetch({ stripe: shape, chunk, signal });
  }

  /** Whether the chunk can be had without another frame. */
  async isKept(stripe: number, chunk: number): Promise<boolean> {
    const abort = new AbortController();
    const outcome = this.fetch(stripe, chunk, abort.signal).then(
      () => true,
      () => false,
    );
    await settle();
    abort.abort();
    return outcome;
  }
}
