import { readOverhead } from "/work/main/e2e/bench/read-overhead.ts";
console.log(await readOverhead.run({ quick: process.argv[2] === "quick", progress: (l) => console.error(l) }));
