/** The application that answers requests: one Hono router over the routes that a host has handlers for. */
import { Hono } from "hono/tiny";
import type { H } from "hono/types";
import type { RequestContext } from "../runtime/request-context.ts";
import { noSuchRoute, refuse, type AppEnv, type Env } from "./http.ts";
import { adminOnly } from "./middleware/auth.ts";
import { checkSettings } from "./middleware/checks.ts";
import { openToAllOrigins } from "./middleware/cors.ts";
import { countAnswers, headersOfAll, traceTheRequest } from "./middleware/every-answer.ts";
import { ROUTES, type RouteName } from "./routes.ts";
import { healthz } from "./routes/health.ts";
import { object } from "./routes/object.ts";
import { plans } from "./routes/plans.ts";
import { read } from "./routes/read.ts";

/** The handlers of each route, first to last. */
type Handlers = Readonly<Partial<Record<RouteName, H<AppEnv>[]>>>;

/** The routes of every host: the object, its bundle and its plan. */
export const READ_HANDLERS = { object: [object], read: [read], plans: [plans], health: [healthz] } satisfies Handlers;

/** Answers a request. It never rejects: an error becomes a response with a code. */
type Application = (request: Request, env: Env, context: RequestContext) => Promise<Response>;

/** Returns the application that has these routes. Every other path is answered by 404. */
export function createApplication(handlers: Handlers): Application {
  const app = new Hono<AppEnv>();
  app.use(countAnswers, headersOfAll, openToAllOrigins, checkSettings, traceTheRequest);
  for (const [name, own] of Object.entries(handlers)) {
    const { method, path, access } = ROUTES[name as RouteName];
    const pattern = path.endsWith("/") ? `${path}*` : path;
    const guards = access === "admin token" ? [adminOnly] : [];
    app.on([method], [pattern], ...guards, ...own);
  }
  app.notFound(noSuchRoute);
  app.onError(refuse);
  return async (request, env, context) => {
    const full = {
      passThroughOnException() {},
      props: {},
      waitUntil: (promise: Promise<unknown>) => context.waitUntil(promise),
    };
    return asStored(await app.fetch(request, env, full));
  };
}

/**
 * The body of a coded object is stored coded. Without this, workerd codes it once more. It forgets a flag that was set
 * earlier whenever a response is made from another one, as Hono does.
 */
function asStored(response: Response): Response {
  if (!response.headers.has("content-encoding")) return response;
  return new Response(response.body, {
    status: response.status,
    headers: response.headers,
    encodeBody: "manual",
  });
}
