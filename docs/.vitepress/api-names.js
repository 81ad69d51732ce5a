/** TypeDoc plugin: names the modules as users import them. */
import { Converter } from "typedoc";

const NAMES = {
  "core/src": "@agarose/core",
  "core/src/async": "@agarose/core/async",
  "core/src/encryption": "@agarose/core/encryption",
  "core/src/format": "@agarose/core/format",
  "core/src/http": "@agarose/core/http",
  "core/src/read": "@agarose/core/read",
  "core/src/sources": "@agarose/core/sources",
  "ec-wasm/js": "@agarose/ec-wasm",
  "solver/src": "@agarose/solver",
  "solver/src/advisor": "@agarose/solver/advisor",
  "solver/src/advisor/codes-by-size": "@agarose/solver/codes-by-size",
  "solver/src/cooperation": "@agarose/solver/cooperation",
  "solver/src/planner": "@agarose/solver/planner",
  "solver/src/policies": "@agarose/solver/policies",
  "solver/src/simulator": "@agarose/solver/simulator",
  "solver/src/traces": "@agarose/solver/traces",
  "sw/src": "@agarose/sw",
  "sw/src/sw": "@agarose/sw/sw",
  "sw/src/devtools": "@agarose/sw/devtools",
  "sw/vite": "@agarose/sw/vite",
  "dev-world/src": "@agarose/dev-world",
  "dev-world/src/client": "@agarose/dev-world/client",
  "dev-world/src/playwright": "@agarose/dev-world/playwright",
};

export function load(application) {
  application.converter.on(Converter.EVENT_RESOLVE_BEGIN, ({ project }) => {
    for (const module of project.children ?? []) module.name = NAMES[module.name] ?? module.name;
  });
}
