/**
 * `agarose-sw.offline.js`: `agarose-sw.js` that keeps what was read, where the configuration says how much.
 * `agarose-sw.encryption.js` is the same with decryption.
 */
import { dropIn } from "../worker/drop-in.ts";
import { offlineStore } from "../offline/offline-store.ts";

dropIn({ store: offlineStore });
