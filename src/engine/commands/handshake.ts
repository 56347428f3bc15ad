import type { Doc } from '../codec/document.js';
import { MAX_DOCUMENT_BYTES } from '../storage/checks/document-checks.js';
import { type Command, MAX_STATEMENTS } from './command.js';

export const MAX_MESSAGE_BYTES = 48_000_000;
/** MongoDB 7.0's: what drivers take as the set of features they may use. */
const MAX_WIRE_VERSION = 21;
export const SERVER_VERSION = '7.0.0';

function hello(): Doc {
  return {
    helloOk: true,
    isWritablePrimary: true,
    maxBsonObjectSize: MAX_DOCUMENT_BYTES,
    maxMessageSizeBytes: MAX_MESSAGE_BYTES,
    maxWriteBatchSize: MAX_STATEMENTS,
    localTime: new Date(),
    logicalSessionTimeoutMinutes: 30,
    minWireVersion: 0,
    maxWireVersion: MAX_WIRE_VERSION,
    readOnly: false,
  };
}

const HELLO_FIELDS = [
  'helloOk',
  'client',
  'compression',
  'saslSupportedMechs',
  'speculativeAuthenticate',
  'backpressure',
];

export const helloCommand: Command = { fields: HELLO_FIELDS, run: hello };
export const isMaster: Command = { fields: HELLO_FIELDS, run: () => ({ ...hello(), ismaster: true }) };
export const ping: Command = { fields: [], run: () => ({}) };
export const endSessionsCommand: Command = { fields: [], run: () => ({}) };

export const buildInfo: Command = {
  fields: [],
  run: () => ({
    version: SERVER_VERSION,
    versionArray: [7, 0, 0, 0],
    gitVersion: 'bsvc',
    modules: ['bsvc embedded engine'],
    bits: 64,
    debug: false,
    maxBsonObjectSize: MAX_DOCUMENT_BYTES,
    storageEngines: ['lmdb'],
  }),
};

export const connectionStatus: Command = {
  fields: ['showPrivileges'],
  run: () => ({ authInfo: { authenticatedUsers: [], authenticatedUserRoles: [] } }),
};
