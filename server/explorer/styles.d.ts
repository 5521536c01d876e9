/** Style sheets are imported for their effect; Vite bundles them with the view that imports them. */
declare module "*.css";
