/** Types for the part of `hypercore` that is used here; the package has none. */
declare module "hypercore" {
  export default class Hypercore {
    constructor(storage: string);
    readonly length: number;
    ready(): Promise<void>;
    append(blocks: Uint8Array | readonly Uint8Array[]): Promise<{ length: number }>;
    close(): Promise<void>;
  }
}
