/* eslint-disable */

/** The name of a tool: `server/tool`. */
export type MetamcpTool = keyof MetamcpTools;

/** The input of a tool. */
export type MetamcpInput<T extends MetamcpTool> = MetamcpTools[T]["input"];

/** The structured output of a tool. */
export type MetamcpOutput<T extends MetamcpTool> = MetamcpTools[T]["output"];

/** A part of a result: text, an image, a resource and so on. */
export interface MetamcpContent {
  type: string;
  [key: string]: unknown;
}

/** The result of a call. */
export interface MetamcpResult<T extends MetamcpTool> {
  content: MetamcpContent[];
  structuredContent?: MetamcpOutput<T>;
  isError?: boolean;
  _meta?: { [key: string]: unknown };
}

/** A function that calls a tool. */
export type MetamcpCall = <T extends MetamcpTool>(
  tool: T,
  input: MetamcpInput<T>,
) => Promise<MetamcpResult<T>>;
