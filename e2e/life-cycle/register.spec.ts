import { registerCases } from "../cases/register.ts";
import { runInChromium } from "../fixtures/chromium.ts";

runInChromium(registerCases);
