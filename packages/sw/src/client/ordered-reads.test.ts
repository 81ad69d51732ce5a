import { orderedReads } from "./ordered-reads.contract.ts";

orderedReads("fast");
