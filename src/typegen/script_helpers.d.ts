declare const console: { [level in "debug" | "error" | "info" | "log" | "warn"]: (...values: unknown[]) => void };
declare function sleep(ms: number): Promise<void>;
declare function progress(done: number, total?: number, message?: string): void;
declare function searchTools(query: string, options?: { server?: string; detail?: string; limit?: number; cursor?: string }): Promise<any>;
declare function describeTool(server: string, tool: string): Promise<any>;
declare function runChain(steps: { tool_id: string; args?: object; use_previous?: boolean }[]): Promise<any>;
