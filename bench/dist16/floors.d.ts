import { type RootDatabase } from "lmdb";
/** Signs one tree head. */
export declare function signOne(): void;
/** Verifies one client's signature. */
export declare function verifyOne(): void;
/** Verifies the signature of one tree head. */
export declare function verifyHead(): void;
/** Microseconds of CPU for one of `count` calls. */
export declare function cpuOf(work: () => void, count: number): number;
/** A bare LMDB environment, opened as the log opens its own: data is visible only when it is on disk. */
export declare function openRawStore(path: string): RootDatabase<Buffer, number>;
