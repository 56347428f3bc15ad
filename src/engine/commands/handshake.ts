import type { Doc } from '../codec/document.js';
import { MAX_DOCUMENT_BYTES } from '../storage/checks/document-checks.js';
import { command, MAX_STATEMENTS } from './command.js';
import { ignored, refusedFlag } from './options.js';

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

const NO_BALANCER = 'This server is not behind a load balancer: leave loadBalanced out of the connection string';

const HELLO_OPTIONS = {
  helloOk: ignored,
  client: ignored,
  compression: ignored,
  saslSupportedMechs: ignored,
  speculativeAuthenticate: ignored,
  backpressure: ignored,
  loadBalanced: refusedFlag(NO_BALANCER),
};

export const helloCommand = command({ options: HELLO_OPTIONS, run: hello });
export const isMaster = command({ options: HELLO_OPTIONS, run: () => ({ ...hello(), ismaster: true }) });
export const ping = command({ options: {}, run: () => ({}) });
export const endSessionsCommand = command({ options: {}, run: () => ({}) });

export const buildInfo = command({
  options: {},
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
});

export const connectionStatus = command({
  options: { showPrivileges: ignored },
  run: () => ({ authInfo: { authenticatedUsers: [], authenticatedUserRoles: [] } }),
});
