import * as published from '@urbackend/sdk';
import type * as types from '../../node_modules/@urbackend/sdk/dist/index.js';

/** The SDK of the hosted service as published, with its types: its entry names them so that only bundlers find them. */
export const sdk = published as unknown as typeof types;
export type { UrBackendClient, UrBackendError } from '../../node_modules/@urbackend/sdk/dist/index.js';
