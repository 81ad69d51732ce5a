/** Prints the routes of a PoP as Markdown, from the catalogue that the application is made from. */
import { DESCRIBED_ROUTES, type DescribedRoute } from "@agarose/worker/reference";
import { code, table } from "../table.ts";

/** The table's word for an access, where it differs from the access itself. */
const TOKENS: Partial<Record<DescribedRoute["access"], string>> = { open: "", "admin token": "`ADMIN_TOKEN`" };

const routes = DESCRIBED_ROUTES.map(([, route]) => route);

process.stdout.write(`
${table(
  ["route", "token", "returns"],
  routes.map((route) => [
    `${route.method === "GET" ? "`GET`, `HEAD` " : "`POST` "}${code(patternOf(route))}`,
    TOKENS[route.access] ?? route.access,
    route.returns,
  ]),
)}
${table(
  ["route", "query parameter", "meaning"],
  routes.flatMap((route) =>
    Object.entries(route.query ?? {}).map(([name, meaning]) => [code(patternOf(route)), code(name), meaning]),
  ),
)}`);

function patternOf({ path }: DescribedRoute): string {
  return path.endsWith("/") ? `${path}<key>` : path;
}
