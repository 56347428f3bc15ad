import { ObjectId } from 'bson';
import type { Collection } from '../../src/features/collections/collection.js';
import { defaultUsersCollection } from '../../src/features/collections/users-collection.js';
import type { NewCollection } from '../../src/features/collections/add-collection.js';
import type { Field } from '../../src/features/collections/fields/field.js';

/** Collections with a field of every type and every option, and names that no program could use as they are. */
export const ESTATE: readonly (Partial<NewCollection> & { name: string; fields: Field[] })[] = [
  {
    name: 'posts',
    fields: [
      { name: 'title', type: 'String', required: true },
      { name: 'slug', type: 'String', unique: true },
      { name: 'views', type: 'Number', default: 0 },
      { name: 'live', type: 'Boolean', default: false },
      { name: 'status', type: 'String', default: '*/ it\'s \\ "here" ${1}' },
      { name: 'publishedAt', type: 'Date' },
      { name: 'author', type: 'Ref', ref: 'users', required: true },
      { name: 'category', type: 'Ref', ref: 'categories' },
      { name: 'anything', type: 'Ref' },
      { name: 'gone', type: 'Ref', ref: 'nowhere' },
      { name: 'tags', type: 'Array', items: { type: 'String' } },
      { name: 'moments', type: 'Array', items: { type: 'Date' } },
      { name: 'related', type: 'Array', items: { type: 'Ref', ref: 'posts' } },
      { name: 'mixed', type: 'Array' },
      { name: 'free', type: 'Object' },
      {
        name: 'meta',
        type: 'Object',
        fields: [
          { name: 'score', type: 'Number', required: true },
          { name: 'editor', type: 'Ref', ref: 'people' },
          { name: 'deep', type: 'Object', fields: [{ name: 'er', type: 'Boolean' }] },
        ],
      },
      {
        name: 'parts',
        type: 'Array',
        items: { type: 'Object', fields: [{ name: 'person', type: 'Ref', ref: 'people' }] },
      },
    ],
  },
  { name: 'categories', fields: [{ name: 'name', type: 'String', required: true, unique: true }] },
  {
    name: 'notes',
    fields: [{ name: 'text', type: 'String', required: true }],
    rls: { mode: 'private', ownerField: 'userId' },
  },
  {
    name: 'diaries',
    fields: [
      { name: 'owner', type: 'String', required: true },
      { name: 'page', type: 'Number' },
    ],
    rls: { mode: 'public-read', ownerField: 'owner' },
  },
  {
    name: 'loose',
    mode: 'flexible',
    fields: [
      { name: 'kind', type: 'String', required: true },
      { name: 'size', type: 'Number' },
    ],
  },
  {
    name: 'people',
    fields: [
      { name: 'full-name', type: 'String' },
      { name: "o'clock`$", type: 'Object' },
      { name: 'naïve', type: 'String' },
      { name: 'class', type: 'String' },
      { name: '1st', type: 'Number', required: true },
      { name: 'title', type: 'String' },
      { name: 'default', type: 'String' },
    ],
  },
  { name: 'People', fields: [{ name: 'x', type: 'Number' }] },
  { name: 'my-posts', fields: [{ name: 'x', type: 'Number' }] },
  { name: 'my_posts', fields: [{ name: 'x', type: 'Number' }] },
  // Names of the service's own schemas.
  { name: 'Error', fields: [{ name: 'x', type: 'Number' }] },
  { name: 'Collection', fields: [{ name: 'x', type: 'Number' }] },
  { name: 'New', fields: [{ name: 'x', type: 'Number' }] },
  { name: 'constructor', fields: [{ name: 'x', type: 'Number' }] },
];

/** Fields that the estate's `users` have beside the fixed ones. */
export const ESTATE_USER_FIELDS: readonly Field[] = [
  { name: 'email', type: 'String', required: true, unique: true },
  { name: 'password', type: 'String', required: true },
  { name: 'name', type: 'String', public: true },
  { name: 'role', type: 'String', protected: true },
];

/** The estate as records of collections, without a database. */
export function estateCollections(): Collection[] {
  const projectId = new ObjectId();
  const users = defaultUsersCollection(projectId);
  const collections = ESTATE.map((declared): Collection => {
    const { name, fields, mode = 'enforced', rls } = declared;
    return { ...users, _id: new ObjectId(), version: 1, name, mode, fields, rls: (rls ?? null) as Collection['rls'] };
  });
  return [...collections, { ...users, fields: [...ESTATE_USER_FIELDS] }];
}
