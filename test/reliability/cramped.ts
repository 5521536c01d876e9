/** Writing where there is room for a part of a file alone. */
import { spawnSync } from "node:child_process";

/**
 * Calls a function of a module with a path and a text of 3000 bytes, in a process whose files end after 1024. Of a write that
 * reaches that limit the kernel takes the part that fits, as it does on a disk that becomes full.
 */
export function cramped(module: string, name: string, path: string): { status: number | null; stderr: string } {
  const program = `import { ${name} } from ${JSON.stringify(module)}; ${name}(${JSON.stringify(path)}, "x".repeat(3000));`;
  const limited = `trap '' XFSZ; ulimit -f 1; exec "$0" --input-type=module --eval "$1"`;
  // What it executes could not be written down either, but cut short.
  const env = { ...process.env, NODE_V8_COVERAGE: undefined };
  const { status, stderr } = spawnSync("bash", ["-c", limited, process.execPath, program], { encoding: "utf8", env });
  return { status, stderr };
}
