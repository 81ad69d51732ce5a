/** The helper for a configuration that is a module: `import { defineConfig } from "agarose/config"`. */
export { defineConfig, type ConfigInput } from "@agarose/storage/config/define-config";
