/** Key spaces: the first byte of every key. */
export const META_SPACE = 0x01;
export const COLLECTION_SPACE = 0x02;
export const DROPPED_SPACE = 0x03;
export const COUNTER_SPACE = 0x04;
export const DOCUMENT_SPACE = 0x10;
export const INDEX_SPACE = 0x20;
/** The log of changes. */
export const CHANGE_SPACE = 0x30;

/** The record without a checksum: it says whether the others have one. */
export const FORMAT_KEY = Buffer.from([META_SPACE, ...Buffer.from('format')]);
/** Read by every command without comparing its checksum: with a damaged one the catalog is read again. */
export const VERSION_KEY = Buffer.from([META_SPACE, ...Buffer.from('version')]);
