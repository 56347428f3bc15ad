// Collections as whoever owns them adds, edits, renames and drops them, with their rules.

export { listCollections } from '../../src/features/collections/collection-store.js';
export { planSchema } from '../../src/features/collections/schema/plan-schema.js';
export { applyDeclared } from '../../src/features/changes/set-changes.js';
export { type Collection, documentsName, type Rls, type RlsMode } from '../../src/features/collections/collection.js';
export { type Field, HIDDEN_FIELD } from '../../src/features/collections/fields/field.js';
export { addCollection, type NewCollection } from '../../src/features/collections/add-collection.js';
export { editCollection, type CollectionEdit, applyEdit } from '../../src/features/collections/edit-collection.js';
export { dropCollection } from '../../src/features/collections/drop-collection.js';
export { renameCollection } from '../../src/features/collections/edit-collection.js';
export { changeCollection, setRls, setRules } from '../../src/features/collections/change-collection.js';
export {
  findCollection,
  requireCollection,
  forgetCollection,
  requireStoredCollection,
} from '../../src/features/collections/collection-store.js';
export { defaultUsersCollection, rolesOf } from '../../src/features/collections/users-collection.js';
export { completeRules } from '../../src/features/collections/rules/check-rules.js';
export { documentIndexes, listMissingIndexes } from '../../src/features/collections/indexes/document-indexes.js';
export { setChanges } from '../../src/features/changes/set-changes.js';
export { parseFieldSpec } from '../../cli/ask/field-spec.js';
export { presentFieldSpec } from '../../cli/ask/field-spec.js';
export { readUniqueOption } from '../../cli/ask/options.js';
export { readExpire, writeExpire, type Expire } from '../../src/features/collections/fields/expire.js';
export { writeUnique, type Unique } from '../../src/features/collections/fields/unique.js';
export { checkStoredDocuments } from '../../src/features/documents/validation/check-stored-documents.js';
export { requireNoViolations } from '../../src/features/collections/stored-violations.js';
export { FIELD_DEFS } from '../../src/features/collections/schema/collection-declaration.js';
export { referencesOf } from '../../src/features/collections/references/reference.js';
