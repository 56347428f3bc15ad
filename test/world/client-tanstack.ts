// Collections of TanStack DB as an application imports them.

export { bsvcCollectionOptions, newId } from '../../src/client/client-tanstack.js';
