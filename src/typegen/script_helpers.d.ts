declare const console: { [level in "debug" | "error" | "info" | "log" | "warn"]: (...values: unknown[]) => void };
declare class ToolError extends Error { code: string; server?: string; tool?: string; hint?: string; details?: any }
declare function sleep(ms: number): Promise<void>;
declare function progress(done: number, total?: number, message?: string): void;
declare function searchTools(query: string, options?: { server?: string; detail?: "summary" | "schema" | "full"; limit?: number; cursor?: string }): Promise<{ server: string; tool: string; description?: string; inputSchema?: object }[]>;
declare function describeTool(server: string, tool: string): Promise<{ server: string; tool: string; description: string; inputSchema: object }>;
declare function runChain(steps: { tool_id: string; args?: object; use_previous?: boolean }[]): Promise<any>;
