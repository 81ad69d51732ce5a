import { createScrubber } from "@agarose/scrubber";
import config from "./agarose.config.json";

const { worker, ScrubWalk, ScrubState } = createScrubber(config, { every: "1d", age: "30d", bandwidth: "10MB/s" });
export { ScrubWalk, ScrubState };
export default worker;
