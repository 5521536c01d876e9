/** Writing a file when there is space only for a part of it. */
import { spawnSync } from "node:child_process";

/**
 * Calls a function of a module with a path and a text of 3000 bytes, in a process whose files may have only 1024. As on
 * a full disk, the kernel writes the part of a write that fits.
 */
export function cramped(module: string, name: string, path: string): { status: number | null; stderr: string } {
  const program = `import { ${name} } from ${JSON.stringify(module)}; ${name}(${JSON.stringify(path)}, "x".repeat(3000));`;
  const limited = `trap '' XFSZ; ulimit -f 1; exec "$0" --input-type=module --eval "$1"`;
  // Coverage files could not be written completely either.
  const env = { ...process.env, NODE_V8_COVERAGE: undefined };
  const { status, stderr } = spawnSync("bash", ["-c", limited, process.execPath, program], { encoding: "utf8", env });
  return { status, stderr };
}
