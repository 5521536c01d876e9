/** Style sheets are imported for their effect; Vite bundles them with the view that asks for them. */
declare module "*.css";
