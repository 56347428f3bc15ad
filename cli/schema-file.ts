import { invalid } from '../src/errors.js';
import type { CollectionDeclaration } from '../src/features/collections/collection-declaration.js';
import { readCollections } from './read-declaration-file.js';

export const SCHEMA_FORMAT = 'bsvc-schema/1';

/** The content of a schema file: all collections of a project. */
export interface SchemaFile {
  format: typeof SCHEMA_FORMAT;
  collections: CollectionDeclaration[];
}

/** Checks form and version of a schema file. 400 names what is wrong. */
export function readSchemaFile(value: unknown): CollectionDeclaration[] {
  const file = value as Partial<SchemaFile> | null;
  if (typeof file !== 'object' || file === null || file.format !== SCHEMA_FORMAT || !Array.isArray(file.collections)) {
    throw invalid(
      'INVALID_FILE',
      `Not a schema file: it must be an object with "format": "${SCHEMA_FORMAT}" and "collections". "bsvc schema export" writes one.`,
    );
  }
  return readCollections(file.collections);
}
