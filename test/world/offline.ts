// The local database of the client, as an application imports it.

export {
  openOfflineStore,
  type OfflineEvent,
  type OfflineOptions,
  type OfflineStore,
} from '../../src/client/client-offline.js';
