import { rangeCasesOverServiceWorker } from "../cases/ranges.ts";
import { runInChromium } from "../fixtures/chromium.ts";

runInChromium(rangeCasesOverServiceWorker);
