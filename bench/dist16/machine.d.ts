export declare function describeMachine(): {
    date: string;
    commit: string;
    cpu: string;
    cpus: number;
    memoryGiB: number;
    platform: string;
    node: string;
    openssl: string;
    loadAverage: number[];
    versions: {
        [k: string]: string;
    };
};
export type Machine = ReturnType<typeof describeMachine>;
/** The header of a run. */
export declare function machineHeader(machine: Machine): string;
