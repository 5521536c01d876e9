/** Errors of the file system as sentences. Node's own texts begin with a code and name the system call. */

/** What is wrong with the path, by the code of the error. The path goes before it. */
const SENTENCES: Readonly<Record<string, string>> = {
  EACCES: "may not be used by this user",
  EPERM: "may not be used by this user",
  EEXIST: "exists already",
  EISDIR: "is a directory, not a file",
  ENOTDIR: "lies below a file, which is not a directory",
  EROFS: "is on a disk that cannot be written",
  ENOSPC: "does not fit on the disk: it is full",
  EDQUOT: "does not fit into the quota of the disk",
  ELOOP: "is a circle of symbolic links",
  ENAMETOOLONG: "is too long a name",
};

/** Whether an error is the system's, so that its cause is outside of the program. */
export const isSystemError = (error: unknown): error is NodeJS.ErrnoException =>
  error instanceof Error && "syscall" in error;

/**
 * An error of the file system as a sentence, with its code behind it. Other errors keep their own text.
 * @param file what was used; a failed read does not name it
 */
export function systemSentence(error: NodeJS.ErrnoException, file = "What is named"): string {
  const { code, path = file, syscall, message } = error;
  if (code === "ENOENT" && error.path !== undefined) return `${missing(path, syscall)} (ENOENT).`;
  const what = code === undefined ? undefined : SENTENCES[code];
  return what === undefined ? message : `${path} ${what} (${code}).`;
}

function missing(path: string, syscall: string | undefined): string {
  if (syscall === "mkdir") return `The directory ${path} cannot be created`;
  return syscall === "open" ? `There is no file ${path}` : `There is no file or directory ${path}`;
}
