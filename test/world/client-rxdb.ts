// The replication of RxDB as an application imports it.

export { newId, replicateBsvc } from '../../src/client/client-rxdb.js';
