import { startWebKit } from "./browsers/webkit.ts";
import { faultCases } from "./cases/faults.ts";
import { mediaCases } from "./cases/media.ts";
import { rangeCasesOverServiceWorker } from "./cases/ranges.ts";
import { readCases } from "./cases/reads.ts";
import { runInBrowser } from "./fixtures/other-browser.ts";

runInBrowser("WebKit", startWebKit, [...readCases, ...rangeCasesOverServiceWorker, ...mediaCases, ...faultCases]);
