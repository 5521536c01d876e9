/** Whether a file is there. */
import { statSync } from "node:fs";

/**
 * Whether there is a file or folder at `path`. `existsSync` says no, too, when the disk cannot be read, and a log whose file
 * cannot be read must not be taken for one without a file.
 * @throws the file system's error if it cannot be known
 */
export const isPresent = (path: string): boolean => statSync(path, { throwIfNoEntry: false }) !== undefined;
