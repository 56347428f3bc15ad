import { ownTurn } from '../../turns.js';
import type { JsonSchema } from '../../platform/schema/schema.js';
import { openComponents } from '../reference/schema-components.js';
import { collectionSchemas } from './collection-schemas.js';
import type { DescribedProject } from './described-project.js';

/**
 * The documents of a project as one JSON Schema: below `$defs` for each collection what is answered, inserted and
 * changed; the schema itself is of an object with a list of documents by collection.
 */
export async function writeSchemaFile(project: DescribedProject): Promise<JsonSchema> {
  const components = openComponents('#/$defs/');
  const properties: Record<string, JsonSchema> = {};
  for (const collection of project.collections) {
    const { Document, Insert, Update, Public } = collectionSchemas(collection, () => null);
    properties[collection.name] = { type: 'array', items: components.place(Document) };
    for (const schema of [Insert, Update, ...(Public ? [Public] : [])]) components.place(schema);
    await ownTurn();
  }
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: project.name,
    type: 'object',
    properties,
    additionalProperties: false,
    $defs: Object.fromEntries(Object.entries(components.schemas).sort(([a], [b]) => (a < b ? -1 : 1))),
  };
}
