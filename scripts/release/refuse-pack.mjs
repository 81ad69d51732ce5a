/** `prepack` of every package: its sources do not run below node_modules, so what is published is built beside them. */
console.error("Packages are published from dist/npm: run `npm run pack` at the root of the repository.");
process.exitCode = 1;
