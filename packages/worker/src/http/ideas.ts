/** Which ideas of the papers are at work at this PoP, and what each saves, for `/v1/status`. Pure. */
import type { CacheSettings } from "../cache/cache-settings.ts";
import type { PeerStatus } from "../peers/peer-state.ts";
import type { PopSnapshot } from "../cache/pop-state.ts";

interface Idea {
  readonly name: "caching" | "lateBinding" | "functional" | "cooperation" | "recovered";
  readonly atWork: boolean;
  /** Why not, where it is not at work. */
  readonly reason: string | null;
  /** Estimate by the last period: how much longer a read would take without it. Null while unknown. */
  readonly savedMs: number | null;
  /** For `caching`: what a read would pay more for egress without it, in US dollars. Null while unknown. */
  readonly savedUsd: number | null;
}

interface IdeasOptions {
  readonly settings: Pick<CacheSettings, "policy" | "functional" | "recovered"> & {
    readonly delta: number;
    readonly fillClientsMin: number;
  };
  readonly snapshot: Pick<PopSnapshot, "ledger" | "regions" | "lastPeriod">;
  /** Undefined for a PoP on its own. */
  readonly peers: readonly PeerStatus[] | undefined;
}

/** Returns the five ideas. */
export function ideasOf({ settings, snapshot, peers }: IdeasOptions): Idea[] {
  const { ledger, regions, lastPeriod } = snapshot;
  const savings = lastPeriod?.savings;
  const isCaching = ledger.some(({ chunks }) => chunks.length > 0);
  const hasRows = (savings?.functionalChunks ?? 0) > 0;
  const reasons: Record<Idea["name"], string | null> = {
    caching: settings.policy === "off" ? "POLICY is off" : isCaching ? null : nothingCached(settings.fillClientsMin),
    lateBinding: settings.delta > 0 ? null : "DELTA is 0",
    functional: !settings.functional ? "FUNCTIONAL is false" : hasRows ? null : "no requested object is cached in part",
    cooperation: !peers
      ? "PEERS or PEER_KEY is not set"
      : peers.some(({ down, silent }) => !down && !silent)
        ? null
        : "no peer answers",
    recovered: !settings.recovered
      ? "RECOVERED is false"
      : !regions.some(({ down }) => down)
        ? "no region is down"
        : (savings?.recovered ?? 0) > 0
          ? null
          : "no chunk of the lost regions is cached",
  };
  return Object.entries(reasons).map(([name, reason]) => ({
    name: name as Idea["name"],
    atWork: reason === null,
    reason,
    savedMs: (savings?.savedMs as Partial<Record<string, number>> | undefined)?.[name] ?? null,
    savedUsd: (name === "caching" ? savings?.egressUsd?.saved : undefined) ?? null,
  }));
}

function nothingCached(clientsMin: number): string {
  const needed = clientsMin > 1 ? `: ${clientsMin} networks must ask for an object first (FILL_CLIENTS_MIN)` : "";
  return `nothing is cached yet${needed}`;
}
