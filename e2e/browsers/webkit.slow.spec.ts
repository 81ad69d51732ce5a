import { startWebKit } from "./webkit.ts";
import { cspCases } from "../cases/csp.ts";
import { importedCases } from "../cases/imported.ts";
import { faultCases } from "../cases/faults.ts";
import { mediaCases } from "../cases/media.ts";
import { rangeCasesOverServiceWorker } from "../cases/ranges.ts";
import { readCases } from "../cases/reads.ts";
import { registerCases } from "../cases/register.ts";
import { runInBrowser } from "./other-browser.ts";

const cases = [
  ...readCases,
  ...rangeCasesOverServiceWorker,
  ...mediaCases,
  ...faultCases,
  ...cspCases,
  ...importedCases,
  ...registerCases,
];
runInBrowser("WebKit", startWebKit, cases, { workersReport: false });
