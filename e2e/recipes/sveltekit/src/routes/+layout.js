// The adapter for static files builds a page of each route.
export const prerender = true;
