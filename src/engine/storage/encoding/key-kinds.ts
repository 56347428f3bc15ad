// The first byte of every encoded value is its place in BSON's order. 0x00 stays free: it ends documents and arrays.
export const MIN_KEY_KIND = 0x08;
export const EMPTY_ARRAY_KIND = 0x0c;
export const NULL_KIND = 0x10;
export const NUMBER_KIND = 0x20;
export const TEXT_KIND = 0x30;
export const DOCUMENT_KIND = 0x40;
export const ARRAY_KIND = 0x50;
export const BINARY_KIND = 0x60;
export const OBJECT_ID_KIND = 0x70;
export const BOOLEAN_KIND = 0x80;
export const DATE_KIND = 0x90;
export const TIMESTAMP_KIND = 0xa0;
export const REGEX_KIND = 0xb0;
export const DB_REFERENCE_KIND = 0xb8;
export const CODE_KIND = 0xc0;
export const CODE_WITH_SCOPE_KIND = 0xc8;
export const MAX_KEY_KIND = 0xf0;
