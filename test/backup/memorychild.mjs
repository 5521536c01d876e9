// Makes a backup, and says by how many bytes that raised the largest amount of memory that this process had at once. Pages
// of mapped files count, as they do for the system.
import { backUp } from "#cairnlog/engine/log/history/backup.js";

const [, , path, to, operatorKey] = process.argv;
const peak = () => process.resourceUsage().maxRSS * 1024;
const before = peak();
const { manifest } = await backUp({ path, to, operatorKey });
console.log(JSON.stringify({ size: manifest.tree_size, bytes: peak() - before }));
