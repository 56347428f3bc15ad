import { describeCollections } from '../../src/features/project-types/described-project.js';
import { writeTypeFile } from '../../src/features/project-types/type-file.js';
import type { Collection } from '../../src/features/collections/collection.js';
import type { Field } from '../../src/features/collections/fields/field.js';
import { estateCollections } from './estate.js';

/** The types of a project of 60 collections with 25 fields each, and a program that uses every collection. */
export interface LargeProject {
  types: string;
  /** The program's imports and client: what a program has that calls nothing yet. */
  head: string;
  /** A function for each collection that lists, with filter, sort key and populated reference, and inserts. */
  calls: string;
}

export async function buildLargeProject(): Promise<LargeProject> {
  const estate = estateCollections();
  const types = ['String', 'Number', 'Boolean', 'Date', 'Ref'] as const;
  const fields = Array.from({ length: 25 }, (_, at): Field => {
    const type = types[at % types.length]!;
    return { name: `field${at}`, type, required: at % 2 === 0, ...(type === 'Ref' && { ref: 'kind1' }) };
  });
  const kinds = Array.from({ length: 60 }, (_, at): Collection => ({ ...estate[0]!, name: `kind${at}`, fields }));
  const calls = kinds.map(
    ({ name }) => `export const ${name} = async () => {
        const { items } = await api.collection('${name}').list({ filter: { field0: '', field1_gt: 1 }, sort: '-field3', populate: ['field4'] });
        await api.collection('${name}').insert({ field0: '', field2: true, field4: '', field6: 1, field8: '', field10: '', field12: true, field14: '', field16: 1, field18: '', field20: '', field22: true, field24: '' });
        return items[0]!.field0.length;
      };`,
  );
  const collections = [...kinds, ...estate.filter(({ name }) => name === 'users')];
  return {
    types: await writeTypeFile(describeCollections('shop', collections, { isPublic: false })),
    head: `import { createClient } from './client.js';
import type { Project } from './project.js';
export const api = createClient<Project>({ url: '', key: '' });
`,
    calls: calls.join('\n'),
  };
}
