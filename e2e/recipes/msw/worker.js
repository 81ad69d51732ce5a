importScripts("/agarose-sw.js");
// The content of agarose.json, which your bundler puts in here. In development, that of the local world.
agarose(CONFIG);
// Last, because it answers everything: what is below the prefix of Agarose does not reach it.
importScripts("/mockServiceWorker.js");
