import { invalid } from '../../src/errors.js';
import {
  SCHEMA_FORMAT,
  type CollectionDeclaration,
  type SchemaFile,
} from '../../src/features/collections/schema/collection-declaration.js';
import { readCollections } from './read-declaration-file.js';

/** Checks form and version of the schema file `name`. 400 names what is wrong. */
export function readSchemaFile(value: unknown, name: string): CollectionDeclaration[] {
  const file = value as Partial<SchemaFile> | null;
  if (typeof file !== 'object' || file === null || file.format !== SCHEMA_FORMAT || !Array.isArray(file.collections)) {
    throw invalid(
      'INVALID_FILE',
      `Not a schema file: it must be an object with "format": "${SCHEMA_FORMAT}" and "collections". "bsvc schema export" writes one.`,
    );
  }
  return readCollections(file.collections, `${name}: collections`);
}
