export interface Child {
    readonly pid: number;
    /** Sends an order and resolves with the reply. @throws if the process ends before it replies */
    ask<Reply>(order: unknown): Promise<Reply>;
    /** Lets the process end. */
    close(): Promise<void>;
}
/** Forks a module that calls `answerOrders`. */
export declare function startChild(module: URL): Child;
/** The child's side. A handler that throws ends the process, which its parent notices. */
export declare function answerOrders<Order>(handle: (order: Order) => unknown): void;
