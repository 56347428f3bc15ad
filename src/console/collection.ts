import type { Address, DataOf } from './api-paths.js';
import type { ApiSchemas } from './api-routes.js';

export type CollectionsPath = Address<'/api/projects/{projectId}/collections'>;
export type CollectionPath = Address<'/api/projects/{projectId}/collections/{collection}'>;
export type DocumentsPath = Address<DocumentsRoute>;
type DocumentsRoute = '/api/projects/{projectId}/collections/{collection}/documents';

export type Collection = ApiSchemas['ListedCollection'];
export type DeclaredField = ApiSchemas['Field'];

/** Undeclared fields accept any value. */
type OrAny<Shape extends { type: unknown }> = Omit<Shape, 'type'> & { type: Shape['type'] | 'any' };

/** The type of a value, and what it has to keep to (rest-api.md 2.3, 2.4). */
export type FieldShape = OrAny<ApiSchemas['Shape']>;
/** A field of documents. */
export type CollectionField = OrAny<DeclaredField>;

export const USERS = 'users';

/** A document is looked at in the trash too. */
export const TRASHED_TOO = { include_deleted: true };

/** The documents of a list; none of one that only counts. */
export const documentsIn = (list: DataOf<'GET', DocumentsRoute>): ApiSchemas['ShownDocument'][] =>
  'items' in list ? list.items : [];
