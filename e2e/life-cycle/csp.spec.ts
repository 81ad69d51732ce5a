import { cspCases } from "../cases/csp.ts";
import { runInChromium } from "../fixtures/chromium.ts";

runInChromium(cspCases);
