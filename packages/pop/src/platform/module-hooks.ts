/**
 * Provides the Worker's import from Cloudflare's runtime, `cloudflare:workers`, on Node. Importing this registers it.
 */
import { registerHooks } from "node:module";

const OBJECTS = new URL(`./durable-object${import.meta.url.endsWith(".ts") ? ".ts" : ".js"}`, import.meta.url).href;

registerHooks({
  resolve(specifier, context, next) {
    if (specifier === "cloudflare:workers") return { url: OBJECTS, shortCircuit: true };
    return next(specifier, context);
  },
});
