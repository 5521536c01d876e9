/** Measures reads of a service that has some entries. */
export declare function measureReads(port: number, entries: number): Promise<Record<string, unknown>>;
