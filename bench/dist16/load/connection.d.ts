export interface Place {
    readonly host: string;
    readonly port: number;
}
export interface Answer {
    /** 0 for a connection that broke. */
    readonly status: number;
    readonly body: string;
}
export interface Connection {
    /** Sends a request and resolves with its answer; with status 0 if the connection breaks. */
    exchange(request: Buffer): Promise<Answer>;
    close(): void;
}
/** A whole request, including headers, whose body is this JSON text. */
export declare function postRequest({ host, port }: Place, path: string, body: string): Buffer;
/** Connects. @throws the error of the socket if it cannot */
export declare function openConnection({ host, port }: Place): Promise<Connection>;
