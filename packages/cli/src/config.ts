/** What a configuration that is a module imports: `import { defineConfig } from "agarose/config"`. */
export { defineConfig, type ConfigInput } from "@agarose/storage/config/define-config";
