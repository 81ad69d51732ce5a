/** Every route of a PoP. The application and its counters are made from it; `route-reference.ts` describes each. */

/** Whose token or signature a request needs. */
export type Access = "open" | "private keys" | "peers" | "admin token";

/** A route. */
export interface Route {
  /** GET answers HEAD, too. */
  readonly method: "GET" | "POST";
  /** A key follows the path of a route that ends with a slash. */
  readonly path: string;
  readonly access: Access;
}

/** The routes by name. */
export const ROUTES = {
  object: { method: "GET", path: "/o/", access: "private keys" },
  tile: { method: "GET", path: "/t/", access: "private keys" },
  read: { method: "GET", path: "/v1/read/", access: "private keys" },
  plans: { method: "GET", path: "/v1/plans", access: "private keys" },
  chunk: { method: "GET", path: "/v1/chunk/", access: "peers" },
  peers: { method: "POST", path: "/v1/peers", access: "peers" },
  health: { method: "GET", path: "/healthz", access: "open" },
  status: { method: "GET", path: "/v1/status", access: "admin token" },
  metrics: { method: "GET", path: "/metrics", access: "admin token" },
  purge: { method: "POST", path: "/v1/purge", access: "admin token" },
} as const satisfies Readonly<Record<string, Route>>;

/** The name of a route. */
export type RouteName = keyof typeof ROUTES;

const PATHS = Object.values(ROUTES).map(({ path }) => path);

/** Returns the route of a path, without its key, or `other`. */
export function routeOf(pathname: string): string {
  return PATHS.find((path) => pathname === path || (path.endsWith("/") && pathname.startsWith(path))) ?? "other";
}
