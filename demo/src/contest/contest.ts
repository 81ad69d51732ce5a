/**
 * The same photographs read by three contestants in turn, with real requests: Agarose, one copy behind a CDN, and two
 * copies with failover.
 */
import { PHOTOS } from "../../samples/index.ts";
import { byId, h } from "../page/dom.ts";
import { ms } from "../page/format.ts";
import type { DemoWorld } from "../state/world.ts";
import { regionsToSpare } from "../world/redundancy.ts";

/** Reads that a card shows as bars, and takes its median of. */
const SHOWN = 24;
const PAUSE_MS = 400;
/** Rounds that are not counted: the service worker measures its sources in them. */
const WARM_UP = 3;
/** Bars are on a log scale. */
const [FASTEST_MS, SLOWEST_MS] = [5, 2000];
const LIST = new Intl.ListFormat("en-GB");

interface Contestant {
  /** The id of its card. */
  readonly id: string;
  /** The address of an object. `cdn` is the one beside the client. */
  readonly url: (key: string, cdn: string) => string;
}

const CONTESTANTS: readonly Contestant[] = [
  { id: "agarose", url: (key) => `/ec/${key}` },
  { id: "one-copy", url: (key, cdn) => `${cdn}/1/${key}` },
  { id: "two-copies", url: (key, cdn) => `${cdn}/2/${key}` },
];

/** Starts the reads. The returned switch stops and resumes them. */
export function startContest(world: DemoWorld): { run(on: boolean): void } {
  const cards = CONTESTANTS.map((contestant) => new Card(contestant));
  /** SHA-256 by key, of reads that were verified. The copies must have the same. */
  const digests = new Map<string, string>();
  let running = false;
  let rounds = 0;
  let down = "";

  world.addEventListener("change", () => {
    const names = world.state?.regions.filter((region) => region.down).map(({ name }) => name) ?? [];
    if (names.join() === down) return;
    down = names.join();
    for (const card of cards) card.reset();
    const tooMany = world.state && regionsToSpare(world.state) < 0 ? ", so uncached photographs may fail" : "";
    byId("since").textContent =
      names.length === 0
        ? "All regions are up again. Counted since then:"
        : `${LIST.format(names)} ${names.length === 1 ? "is" : "are"} down${tooMany}. Counted since then:`;
  });

  async function round(): Promise<void> {
    const { key, alt } = PHOTOS[Math.floor(Math.random() * PHOTOS.length)]!;
    const cdn = world.file.copies[world.state?.client.near ?? ""];
    if (cdn === undefined) return;
    // Each of them is the first one of a round in turn.
    const first = rounds++ % cards.length;
    for (const card of [...cards.slice(first), ...cards.slice(0, first)]) {
      const before = down;
      const read = await card.read(key, alt, cdn, digests);
      if (rounds > WARM_UP && before === down) card.count(read);
    }
  }

  async function repeat(): Promise<void> {
    if (document.visibilityState === "visible") await round();
    if (running) setTimeout(() => void repeat(), PAUSE_MS);
  }

  return {
    run(on) {
      const begins = on && !running;
      running = on;
      if (begins) void repeat();
    },
  };
}

interface TimedRead {
  readonly ms: number;
  /** Absent when the read was good. */
  readonly problem?: "no answer" | "wrong bytes";
}

class Card {
  readonly #contestant: Contestant;
  readonly #element: HTMLElement;
  readonly #image: HTMLImageElement;
  #reads: TimedRead[] = [];
  #count = 0;
  #failed = 0;

  constructor(contestant: Contestant) {
    this.#contestant = contestant;
    this.#element = byId(contestant.id);
    this.#image = this.#element.querySelector("img")!;
  }

  /** Reads once, and shows the photograph if it arrives. */
  async read(key: string, alt: string, cdn: string, digests: Map<string, string>): Promise<TimedRead> {
    const startMs = performance.now();
    const isVerified = this.#contestant.id === "agarose";
    try {
      const response = await fetch(this.#contestant.url(key, cdn), { cache: "no-store" });
      const bytes = await response.arrayBuffer();
      const tookMs = performance.now() - startMs;
      if (!response.ok) return { ms: tookMs, problem: "no answer" };
      const digest = String(new Uint8Array(await crypto.subtle.digest("SHA-256", bytes)));
      if (isVerified) digests.set(key, digest);
      this.#show(bytes, alt);
      return (digests.get(key) ?? digest) === digest ? { ms: tookMs } : { ms: tookMs, problem: "wrong bytes" };
    } catch {
      return { ms: performance.now() - startMs, problem: "no answer" };
    }
  }

  count(read: TimedRead): void {
    this.#reads = [...this.#reads, read].slice(-SHOWN);
    this.#count++;
    if (read.problem) {
      this.#failed++;
      this.#figure.dataset["problem"] = read.problem;
    }
    this.#draw();
  }

  reset(): void {
    this.#reads = [];
    this.#count = 0;
    this.#failed = 0;
    delete this.#figure.dataset["problem"];
    this.#draw();
  }

  #show(bytes: ArrayBuffer, alt: string): void {
    delete this.#figure.dataset["problem"];
    URL.revokeObjectURL(this.#image.src);
    this.#image.src = URL.createObjectURL(new Blob([bytes]));
    this.#image.alt = alt;
  }

  get #figure(): HTMLElement {
    return this.#image.parentElement!;
  }

  #draw(): void {
    const times = this.#reads.flatMap((read) => (read.problem ? [] : [read.ms])).toSorted((a, b) => a - b);
    const median = times[Math.floor(times.length / 2)];
    const part = (selector: string): HTMLElement => this.#element.querySelector(selector)!;
    part(".failed").replaceChildren(h("b", {}, this.#failed), ` of ${this.#count} failed`);
    part(".failed").classList.toggle("some", this.#failed > 0);
    part(".median").replaceChildren(h("b", {}, median === undefined ? "…" : ms(median)), " median");
    part(".strip").replaceChildren(
      ...this.#reads.map((read) =>
        h("i", { class: read.problem ? "bad" : "good", style: `height:${read.problem ? 100 : heightOf(read.ms)}%` }),
      ),
    );
  }
}

/** The height of a bar in percent. */
function heightOf(time: number): number {
  const share = Math.log(time / FASTEST_MS) / Math.log(SLOWEST_MS / FASTEST_MS);
  return 8 + 92 * Math.min(1, Math.max(0, share));
}
