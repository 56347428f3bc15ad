const COLLECTION_NAME = /^[A-Za-z][A-Za-z0-9_-]{0,63}$/;

/** True if a text can name a collection (decisions.md 3). Names are case-sensitive. */
export function isCollectionName(text: string): boolean {
  return COLLECTION_NAME.test(text);
}
