/**
 * CDNs beside the local world: one Worker per PoP in workerd, reached over a link like those of the world's own PoPs.
 */
import { readFile } from "node:fs/promises";
import { Miniflare } from "miniflare";
import { NO_FAULTS, openLink, WORLD_DEFAULTS, type Geography } from "@agarose/dev-world";

export interface CdnOptions {
  readonly geography: Geography;
  /** All latencies are the geography's times this. */
  readonly scale: number;
  readonly jitterSigma: number;
  readonly cacheBytes: number;
  /** Base addresses of whole copies by PoP, in the order in which they are tried. */
  readonly origins: Readonly<Record<string, readonly string[]>>;
  readonly random: () => number;
}

export interface Cdn {
  /** Address by PoP, for a client beside it: `<url>/o/<key>`. */
  readonly urls: Readonly<Record<string, string>>;
  close(): Promise<void>;
}

export async function startCdn(options: CdnOptions): Promise<Cdn> {
  const { geography, origins, cacheBytes } = options;
  const script = await readFile(new URL("cdn.worker.js", import.meta.url), "utf8");
  const miniflare = new Miniflare({
    workers: geography.pops.map((pop) => ({
      name: pop,
      modules: true as const,
      script,
      compatibilityDate: "2026-07-01",
      kvNamespaces: { OBJECTS: `objects-${pop}` },
      bindings: {
        ORIGINS: JSON.stringify(origins[pop]),
        CACHE_BYTES: String(cacheBytes),
      },
      unsafeDirectSockets: [{ host: "127.0.0.1", port: 0 }],
    })),
  });
  const closers = [() => miniflare.dispose()];
  const close = async (): Promise<void> => {
    for (const closer of closers.toReversed()) await closer();
  };
  await miniflare.ready;
  const urls: Record<string, string> = {};
  for (const pop of geography.pops) {
    const link = await openLink({
      from: "client",
      to: pop,
      target: (await miniflare.unsafeGetDirectURL(pop)).origin,
      latencyMs: () => geography.cacheLatencyMs[pop]! * options.scale,
      jitterSigma: options.jitterSigma,
      bytesPerSecond: () => (WORLD_DEFAULTS.mbitPerSecond * 1e6) / 8,
      faults: () => NO_FAULTS,
      random: options.random,
      now: () => performance.now(),
      onRecord: () => {},
    });
    closers.push(() => link.close());
    urls[pop] = link.url;
  }
  return { urls, close };
}
