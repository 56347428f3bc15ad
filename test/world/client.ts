// The client library as an application imports it.

export { inOrder } from '../../src/client/document-order.js';
export type { ConnectionState } from '../../src/client/connection.js';
export type { SessionStorage } from '../../src/client/platform.js';
export { createClient, type Client, ApiError } from '../../src/client/client.js';
export type { UntypedProject } from '../../src/client/project.js';
export type { FollowEvent } from '../../src/client/stream.js';
