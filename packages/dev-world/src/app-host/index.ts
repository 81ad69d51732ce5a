/** The web host of an app in the local world. */
export { startAppHost, type AppHost, type AppHostOptions } from "./app-host.ts";
export { worldClientConfig, worldRoutes, type Middleware, type WorldRoutesOptions } from "./world-routes.ts";
