/** Types of the module that the Vite plugin makes: `"types": ["@agarose/sw/virtual"]` in `tsconfig.json`. */
declare module "virtual:agarose" {
  import type { Agarose, RegisterOptions } from "@agarose/sw";

  /** `register` of `@agarose/sw`, with the worker, the configuration and the prefix of the plugin. */
  export function register(options?: RegisterOptions): Promise<Agarose>;
}
