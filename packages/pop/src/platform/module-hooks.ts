/**
 * What the Worker imports from Cloudflare's runtime, for Node: `cloudflare:workers`, and WebAssembly files as compiled
 * modules. Importing this module registers both.
 */
import { registerHooks } from "node:module";

const OBJECTS = new URL(`./durable-object${import.meta.url.endsWith(".ts") ? ".ts" : ".js"}`, import.meta.url).href;

registerHooks({
  resolve(specifier, context, next) {
    if (specifier === "cloudflare:workers") return { url: OBJECTS, shortCircuit: true };
    return next(specifier, context);
  },
  load(url, context, next) {
    if (!url.endsWith(".wasm")) return next(url, context);
    const source = [
      'import { readFileSync } from "node:fs";',
      `export default new WebAssembly.Module(readFileSync(new URL(${JSON.stringify(url)})));`,
    ].join("\n");
    return { format: "module", source, shortCircuit: true };
  },
});
