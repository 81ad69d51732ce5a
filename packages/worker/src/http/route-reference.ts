/**
 * The descriptions of the routes in the documents. They are a module of their own, so that a PoP's bundle omits them.
 */
import { ROUTES, type Route, type RouteName } from "./routes.ts";

interface RouteTexts {
  /** Its result or body, as Markdown. */
  readonly returns: string;
  /** Its query parameters, with what they mean as Markdown. */
  readonly query?: Readonly<Record<string, string>>;
}

/** A route with its texts. */
export type DescribedRoute = Route & RouteTexts;

const TRACE = "The id of the read, for [traces](../guides/trace-reads.md).";

const TEXTS: Readonly<Record<RouteName, RouteTexts>> = {
  object: {
    returns: "the object, decoded at the edge; ranges and conditions as RFC 9110",
  },
  tile: {
    returns: "a [tile](#tiles) of a PMTiles archive; the key ends in `/<z>/<x>/<y>`",
  },
  read: {
    returns: "a [bundle](format.md#bundle): plan and cached chunks",
    query: {
      version: "The version that the client knows a plan of. The bundle omits the manifest of that version.",
      generation: "The generation of that manifest. The bundle has a newer one all the same. Default: none is newer.",
      from: "The first stripe. Default: 0.",
      to: "The last stripe, inclusive. Default: the last one of the object.",
      range:
        "A range as in a `Range` header, in place of `from` and `to`. The bundle has only the blocks of that range.",
      leaves: "`true`: of a small range, only the cached blocks, and the hashes of the others.",
      trace: TRACE,
    },
  },
  plans: {
    returns: "the plans of up to 100 objects",
    query: {
      key: "A key, once for each object.",
      bodies: "`1`: the bodies of small objects follow their plans.",
      trace: TRACE,
    },
  },
  chunk: {
    returns: "one cached shard",
    query: {
      version: "The version of the object.",
      stripe: "The number of the stripe.",
      chunk: "The index of the shard.",
    },
  },
  peers: {
    returns: "accepts a digest or events of a [peer](../explanation/caching-and-policies.md#peers)",
  },
  health: {
    returns: "200 without waiting for anything else; where the PoP runs",
  },
  status: {
    returns: "regions, peers, cache and its latency, ideas at work, spending and the last period, with its errors",
  },
  metrics: {
    returns: "[metrics](events-and-metrics.md#metrics-and-logs) for Prometheus",
  },
  purge: {
    returns: "[removes](#purge) keys or a prefix from this PoP",
  },
};

/** The routes in the order of the application, by name. */
export const DESCRIBED_ROUTES: readonly (readonly [name: string, route: DescribedRoute])[] = Object.entries(ROUTES).map(
  ([name, route]) => [name, { ...route, ...TEXTS[name as RouteName] }],
);
