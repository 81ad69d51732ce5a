/** `agarose-sw.js`: a worker by itself when it is registered, a library when another worker imports it. */
import { dropIn } from "../worker/drop-in.ts";

dropIn({});
