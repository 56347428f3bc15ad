import type { ObjectId } from 'bson';
import type { Migration } from './migration.js';

interface StoredCollection {
  _id: ObjectId;
  projectId: ObjectId;
  name: string;
  rules?: Record<string, string> | null;
  namedBy?: { collection: ObjectId; paths?: string[] }[];
}

/**
 * Collections of which rules name sets note all fields that these look at, also those that are compared with a list:
 * they are checked in flexible collections from then on. Records of earlier versions lack them.
 */
export const noteFieldsOfSets: Migration = {
  id: '028-note-fields-of-sets',
  async up(db) {
    const collections = db.collection<StoredCollection>('collections');
    const ruled = await collections.find({ state: 'active', rules: { $type: 'object' } }).toArray();
    for (const { _id, projectId, rules } of ruled) {
      for (const [name, paths] of fieldsBySet(Object.values(rules ?? {}))) {
        const naming = { $elemMatch: { collection: _id, paths: { $exists: false } } };
        await collections.updateOne(
          { projectId, name, state: 'active', namedBy: naming },
          { $set: { 'namedBy.$.paths': [...paths] }, $inc: { version: 1 } },
        );
      }
    }
  },
};

/** `members[user = user.id and role in ["editor"]].board`, where texts are empty. */
const SET = /([\w-]+)\s*\[((?:[^[\]]|\[[^\]]*\])*)\]\s*\.\s*([\w-]+(?:\s*\.\s*[\w-]+)*)/g;
/** `user.id in members` is about the field `members`. */
const CONDITION = /^(?:user\s*\.[\w\s.-]+?\s+in\s+)?([\w-]+(?:\s*\.\s*[\w-]+)*)/;
const AND = /(?<![\w.-])and(?![\w.-])/;

/** By collection, the fields of its documents that the sets of these rules look at. */
function fieldsBySet(rules: readonly string[]): Map<string, Set<string>> {
  const fields = new Map<string, Set<string>>();
  for (const rule of rules) {
    for (const [, name, conditions, path] of rule.replace(/"(?:[^"\\]|\\.)*"/g, '""').matchAll(SET)) {
      const known = fields.get(name!) ?? new Set();
      const asked = conditions!.split(AND).map((condition) => CONDITION.exec(condition.trim())?.[1]);
      for (const each of [...asked, path]) {
        const field = each?.replace(/\s/g, '');
        if (field !== undefined && field !== 'id') known.add(field);
      }
      fields.set(name!, known);
    }
  }
  return fields;
}
