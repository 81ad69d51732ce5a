import { orderedReads } from "../../test/ordered-reads.contract.ts";

orderedReads("fast");
