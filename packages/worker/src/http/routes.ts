/** Every route of a PoP. The application, its counters, and docs/reference/http-api.md are made from it. */

/** Whose token or signature a request needs. */
export type Access = "open" | "private keys" | "peers" | "admin token";

/** A route. */
export interface Route {
  /** GET answers HEAD, too. */
  readonly method: "GET" | "POST";
  /** A key follows the path of a route that ends with a slash. */
  readonly path: string;
  readonly access: Access;
  /** What it returns or takes, as Markdown. */
  readonly returns: string;
  /** Its query parameters, with what they mean as Markdown. */
  readonly query?: Readonly<Record<string, string>>;
}

const TRACE = "The id of the read, for [traces](../guides/trace-reads.md).";

/** The routes by name. */
export const ROUTES = {
  object: {
    method: "GET",
    path: "/o/",
    access: "private keys",
    returns: "the object, decoded at the edge; ranges and conditions as RFC 9110",
  },
  read: {
    method: "GET",
    path: "/v1/read/",
    access: "private keys",
    returns: "a [bundle](format.md#bundle): plan and cached chunks",
    query: {
      version: "The version that the client knows a plan of. The bundle leaves out the manifest of that version.",
      generation: "The generation of that manifest. The bundle has a newer one all the same. Default: none is newer.",
      from: "The first stripe. Default: 0.",
      to: "The last stripe, inclusive. Default: the last one of the object.",
      range:
        "A range as in a `Range` header, in place of `from` and `to`. The bundle has the blocks of that range alone.",
      leaves: "`true`: of a small range, only what is cached, and the hashes of the other blocks.",
      trace: TRACE,
    },
  },
  plans: {
    method: "GET",
    path: "/v1/plans",
    access: "private keys",
    returns: "the plans of up to 100 objects",
    query: {
      key: "A key, once for each object.",
      bodies: "`1`: the bodies of small objects follow their plans.",
      trace: TRACE,
    },
  },
  chunk: {
    method: "GET",
    path: "/v1/chunk/",
    access: "peers",
    returns: "one cached shard",
    query: {
      version: "The version of the object.",
      stripe: "The number of the stripe.",
      chunk: "The index of the shard.",
    },
  },
  peers: {
    method: "POST",
    path: "/v1/peers",
    access: "peers",
    returns: "takes a digest or events of a [peer](../explanation/caching-and-policies.md#peers)",
  },
  health: {
    method: "GET",
    path: "/healthz",
    access: "open",
    returns: "200 without waiting for anything else; where the PoP runs",
  },
  status: {
    method: "GET",
    path: "/v1/status",
    access: "admin token",
    returns: "regions, peers, cache and its latency, ideas at work, spending and the last period, with its errors",
  },
  metrics: {
    method: "GET",
    path: "/metrics",
    access: "admin token",
    returns: "[metrics](events-and-metrics.md#metrics-and-logs) for Prometheus",
  },
  purge: {
    method: "POST",
    path: "/v1/purge",
    access: "admin token",
    returns: "[removes](#purge) keys or a prefix from this PoP",
  },
} as const satisfies Readonly<Record<string, Route>>;

/** The name of a route. */
export type RouteName = keyof typeof ROUTES;

const PATHS = Object.values(ROUTES).map(({ path }) => path);

/** Returns the route of a path, without its key, or `other`. */
export function routeOf(pathname: string): string {
  return PATHS.find((path) => pathname === path || (path.endsWith("/") && pathname.startsWith(path))) ?? "other";
}
