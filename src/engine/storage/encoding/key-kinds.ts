// The first byte of every encoded value is its place in BSON's order. 0x00 stays free: it ends documents and arrays.
export const MIN_KEY = 0x08;
export const EMPTY_ARRAY = 0x0c;
export const NULL = 0x10;
export const NUMBER = 0x20;
export const TEXT = 0x30;
export const DOCUMENT = 0x40;
export const ARRAY = 0x50;
export const BINARY = 0x60;
export const OBJECT_ID = 0x70;
export const BOOLEAN = 0x80;
export const DATE = 0x90;
export const TIMESTAMP = 0xa0;
export const REGEX = 0xb0;
export const DB_REFERENCE = 0xb8;
export const CODE = 0xc0;
export const CODE_WITH_SCOPE = 0xc8;
export const MAX_KEY = 0xf0;
